package transport

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxPause is the longest pause, whatever the API asks for.
const maxPause = 5 * time.Minute

// pacer refuses calls for as long as the API asked for a pause, so many calls can't keep it from
// recovering.
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

// PausedUntil is the end of the pause: see backend.PausedUntil.
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

// pause begins the pause of a Retry-After header: a number of seconds, or a time.
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
