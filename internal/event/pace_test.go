package event_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stowage-dev/stowage/internal/event"
)

const (
	eventPath = "/clusters/c1/apis/events.k8s.io/v1/namespaces/default/events"
	claimPath = "/api/v1/namespaces/events/persistentvolumeclaims"
)

// sent are the times when requests reached the API server, since a test began.
type sent struct {
	began time.Time
	mu    sync.Mutex
	times []time.Duration
	// takes is how long the API server takes.
	takes time.Duration
}

// soFar are the times of the requests until now.
func (s *sent) soFar() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

func (s *sent) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.times = append(s.times, time.Since(s.began))
	s.mu.Unlock()
	if s.takes > 0 {
		<-time.After(s.takes)
	}
	return httptest.NewRecorder().Result(), nil
}

// pacedClient returns how a program sends a request of a method to a path, and what it runs at its end.
func pacedClient(t *testing.T, server *sent) (send func(method, path string), end func(context.Context) error) {
	t.Helper()
	server.began = time.Now()
	pace, config := event.NewPace(), &rest.Config{}
	pace.Apply(config)
	paced := config.WrapTransport(server)
	return func(method, path string) {
		request := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		if response, err := paced.RoundTrip(request); err != nil {
			t.Error(err)
		} else {
			response.Body.Close()
		}
	}, pace.Start
}

// burst sends events at the same time.
func burst(events int, send func(method, path string)) {
	for range events {
		go send(http.MethodPost, eventPath)
	}
}

func TestAFewEventsAreSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &sent{}
		send, _ := pacedClient(t, server)
		for range 20 {
			send(http.MethodPost, eventPath)
		}
		if last := server.soFar()[19]; last != 0 {
			t.Errorf("the last of 20 events waited %s", last)
		}
	})
}

func TestABurstOfEventsWaitsTenSecondsAtMostAndLosesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &sent{}
		send, _ := pacedClient(t, server)
		burst(500, send)
		<-time.After(5*time.Second + time.Millisecond)
		if got := len(server.soFar()); got != 70 {
			t.Errorf("after 5 s, %d events are sent, wanted 20 at once and 10 a second", got)
		}
		<-time.After(5 * time.Second)
		if got := len(server.soFar()); got != 500 {
			t.Errorf("after 10 s, %d of 500 events are sent", got)
		}
	})
}

func TestEventsAfterABurstAreSentAtOnceAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &sent{}
		send, _ := pacedClient(t, server)
		burst(500, send)
		<-time.After(12 * time.Second)
		before := time.Since(server.began)
		send(http.MethodPost, eventPath)
		if got := server.soFar()[500]; got != before {
			t.Errorf("an event two seconds after the burst is sent after %s, wanted %s", got, before)
		}
	})
}

func TestOnlyNewEventsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &sent{}
		send, _ := pacedClient(t, server)
		burst(100, send)
		synctest.Wait()
		send(http.MethodPatch, claimPath)
		send(http.MethodGet, eventPath)
		send(http.MethodPatch, eventPath+"/repeated")
		if got := len(server.soFar()); got != 23 {
			t.Errorf("%d requests are sent at once, wanted 20 events and three others", got)
		}
		<-time.After(time.Minute)
	})
}

// The memory that waiting events take is bounded.
func TestMoreThanAThousandEventsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &sent{}
		send, _ := pacedClient(t, server)
		burst(1500, send)
		synctest.Wait()
		if got := len(server.soFar()); got < 500 {
			t.Errorf("%d of 1500 events are sent at once, and the others wait", got)
		}
		<-time.After(time.Minute)
	})
}

func TestAProgramThatStopsSendsWhatWaitsAndWaitsForTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &sent{takes: 100 * time.Millisecond}
		send, end := pacedClient(t, server)
		burst(100, send)
		synctest.Wait()
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := end(stopped); err != nil {
			t.Error(err)
		}
		if got, took := len(server.soFar()), time.Since(server.began); got != 100 || took != 400*time.Millisecond {
			t.Errorf("the program ended after %s with %d of 100 events sent, wanted all, thirty at a time, and 400ms for the answers", took, got)
		}
	})
}

func TestAProgramThatStopsDoesNotWaitForeverForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &sent{takes: time.Hour}
		send, end := pacedClient(t, server)
		go send(http.MethodPost, eventPath)
		synctest.Wait()
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := end(stopped); err != nil {
			t.Error(err)
		}
		if took := time.Since(server.began); took != 2*time.Second {
			t.Errorf("the program ended after %s, wanted 2s", took)
		}
		<-time.After(time.Hour)
	})
}
