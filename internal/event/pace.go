package event

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
)

const (
	// eventsAtOnce are sent without waiting, and eventsPerSecond more each second.
	eventsAtOnce, eventsPerSecond = 20, 10
	// longestWait is how long an event waits at most.
	longestWait = 10 * time.Second
	// maxWaiting is how many events wait at most. Those beyond are sent at once.
	maxWaiting = 1000
	// maxSent are sent at the same time at most. The API server takes about 100 requests on a connection at once.
	maxSent = 30
	// endTimeout is how long a program that stops waits for the answers to its last events. Its lease is held that long.
	endTimeout = 2 * time.Second
)

// Pace has a program's new events wait while there are many, ten seconds at most: a burst of events takes as much from the API server
// as the writes that they tell of. Each keeps its time. A repetition, which changes an event, doesn't wait: client-go's broadcaster
// sends it under a lock. Pace may be used concurrently.
type Pace struct {
	turns sync.Mutex
	limit *rate.Limiter
	// waiting has an element for each event that waits, or waited and is being sent.
	waiting chan struct{}
	// sent has an element for each event that is being sent after a wait.
	sent  chan struct{}
	ended chan struct{}
}

// NewPace returns the pace of one program. Its manager has to run it, too.
func NewPace() *Pace {
	return &Pace{
		limit: rate.NewLimiter(eventsPerSecond, eventsAtOnce), waiting: make(chan struct{}, maxWaiting),
		sent: make(chan struct{}, maxSent), ended: make(chan struct{}),
	}
}

// Apply has the clients that are made from a config keep the pace.
func (p *Pace) Apply(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &paced{RoundTripper: next, pace: p} })
}

// Start sends the events that wait once the context ends, and returns when they were answered, or after two seconds.
func (p *Pace) Start(ctx context.Context) error {
	<-ctx.Done()
	close(p.ended)
	answered := time.After(endTimeout)
	for range maxWaiting {
		select {
		case p.waiting <- struct{}{}: // until all elements are those of this loop, an event has one
		case <-answered:
			return nil
		}
	}
	return nil
}

// NeedLeaderElection returns false: a program that doesn't lead has events, too.
func (*Pace) NeedLeaderElection() bool { return false }

type paced struct {
	http.RoundTripper
	pace *Pace
}

// WrappedRoundTripper has client-go find the transport.
func (p *paced) WrappedRoundTripper() http.RoundTripper { return p.RoundTripper }

// RoundTrip sends a request, and an event after its wait.
func (p *paced) RoundTrip(request *http.Request) (*http.Response, error) {
	if !isEvent(request) {
		return p.RoundTripper.RoundTrip(request)
	}
	select {
	case p.pace.waiting <- struct{}{}:
		defer func() { <-p.pace.waiting }()
		p.pace.wait(request.Context())
		p.pace.sent <- struct{}{}
		defer func() { <-p.pace.sent }()
	default:
	}
	return p.RoundTripper.RoundTrip(request)
}

// wait returns at the pace, or when the event can't wait any longer.
func (p *Pace) wait(ctx context.Context) {
	delay := p.delay()
	if delay == 0 {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ended:
	case <-ctx.Done():
	}
}

// delay takes the next turn, and returns when that is, or ten seconds if it is later. The turn is then given back, before any other
// is taken: the limiter gives back no earlier ones, and the events after a burst would wait for it.
func (p *Pace) delay() time.Duration {
	p.turns.Lock()
	defer p.turns.Unlock()
	turn := p.limit.Reserve()
	if turn.Delay() <= longestWait {
		return turn.Delay()
	}
	turn.Cancel()
	return longestWait
}

// isEvent reports whether a request creates an event. The path may begin with that of a proxy.
func isEvent(request *http.Request) bool {
	return request.Method == http.MethodPost && strings.Contains(request.URL.Path, "/apis/events.k8s.io/")
}
