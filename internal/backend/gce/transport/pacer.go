package transport

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// longestPause is how long the API is left alone at most, whatever it asks for.
const maxPause = 5 * time.Minute

// pacer leaves the API alone for as long as it asked to be. Calls meanwhile are refused
// here, so that a crowd of them doesn't keep the API from getting well.
type pacer struct {
	next http.RoundTripper
	now  func() time.Time

	mu    sync.Mutex
	until time.Time
}

// PausedError is a call that was not made.
type PausedError struct{ until time.Time }

// Error implements error.
func (e *PausedError) Error() string {
	return fmt.Sprintf("the Compute API asked to be left alone until %s", e.until.UTC().Format(time.TimeOnly+" MST"))
}

// PausedUntil is how long no call is made: see backend.PausedUntil.
func (e *PausedError) PausedUntil() time.Time { return e.until }

// RoundTrip implements http.RoundTripper.
func (p *pacer) RoundTrip(request *http.Request) (*http.Response, error) {
	if until := p.pausedUntil(); p.now().Before(until) {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, &PausedError{until}
	}
	answer, err := p.next.RoundTrip(request)
	if err == nil && (answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable) {
		p.pause(answer.Header.Get("Retry-After"))
	}
	return answer, err
}

func (p *pacer) pausedUntil() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

// pause notes what a refusal asked for: a number of seconds, or a time.
func (p *pacer) pause(retryAfter string) {
	now := p.now()
	until, err := http.ParseTime(retryAfter)
	if seconds, number := strconv.ParseUint(retryAfter, 10, 16); number == nil {
		until, err = now.Add(time.Duration(seconds)*time.Second), nil
	}
	if err != nil {
		return
	}
	if latest := now.Add(maxPause); until.After(latest) {
		until = latest
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.until) {
		p.until = until
	}
}
