package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"
)

// namesPerList is how many names one list asks for.
const namesPerList = 50

// Limits bound one list, and how often there is one.
type Limits struct{ Call, Poll time.Duration }

// Poller waits for operations, for all callers: in each scope one list at a time asks for all of
// them, however many there are. All methods can be called at once.
type Poller struct {
	mu     sync.Mutex
	scopes map[Scope]callers
}

// callers are the waiting calls, by the name of the operation.
type callers map[string][]chan<- outcome

// outcome is an operation that has ended, or why its end is unknown.
type outcome struct {
	ended *compute.Operation
	err   error
}

// NewPoller makes a Poller.
func NewPoller() *Poller { return &Poller{scopes: map[Scope]callers{}} }

// Polled is the number of scopes in which calls wait for operations.
func (w *Poller) Polled() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.scopes)
}

// Await returns an operation once it has ended, or an error if the context ends first.
func (w *Poller) Await(ctx context.Context, at Scope, within Limits, name string) (*compute.Operation, error) {
	answer := make(chan outcome, 1)
	w.add(ctx, at, within, name, answer)
	select {
	case got := <-answer:
		return got.ended, got.err
	case <-ctx.Done():
		w.remove(at, name, answer)
		return nil, ctx.Err()
	}
}

func (w *Poller) add(ctx context.Context, at Scope, within Limits, name string, answer chan<- outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	here, polled := w.scopes[at]
	if !polled {
		here = callers{}
		w.scopes[at] = here
		// It polls for all calls, and longer than the first of them may wait.
		go w.poll(context.WithoutCancel(ctx), at, within)
	}
	here[name] = append(here[name], answer)
}

func (w *Poller) remove(at Scope, name string, answer chan<- outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	here := w.scopes[at]
	if here[name] == nil {
		return // the answer came at this moment
	}
	here[name] = slices.DeleteFunc(here[name], func(other chan<- outcome) bool { return other == answer })
	if len(here[name]) == 0 {
		delete(here, name)
	}
}

// poll lists the operations of a scope until no call waits for any.
func (w *Poller) poll(ctx context.Context, at Scope, within Limits) {
	tick := time.NewTicker(within.Poll)
	defer tick.Stop()
	for range tick.C {
		names := w.pending(at)
		if names == nil {
			return
		}
		for some := range slices.Chunk(names, namesPerList) {
			w.deliver(at, some, at.ended(ctx, within, some))
		}
	}
}

// pending returns the names of the operations that calls wait for; nil ends the poll.
func (w *Poller) pending(at Scope) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.scopes[at] {
		names = append(names, name)
	}
	if names == nil {
		delete(w.scopes, at)
	}
	slices.Sort(names)
	return names
}

// deliver sends the outcome of ended operations to their callers. A list that failed goes to all
// callers, which decide when to repeat.
func (w *Poller) deliver(at Scope, names []string, ended map[string]outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		known, has := ended[name]
		if !has {
			continue
		}
		for _, caller := range w.scopes[at][name] {
			caller <- known
		}
		delete(w.scopes[at], name)
	}
}

// ended returns the operations that have ended. One that isn't listed yet counts as running.
func (s Scope) ended(ctx context.Context, within Limits, names []string) map[string]outcome {
	ctx, cancel := context.WithTimeout(ctx, within.Call)
	defer cancel()
	filters, found := []string{}, map[string]outcome{}
	for _, name := range names {
		filters = append(filters, fmt.Sprintf("(name = %q)", name))
	}
	err := s.List(ctx, strings.Join(filters, " OR "), func(page *compute.OperationList) error {
		for _, operation := range page.Items {
			if operation.Status == Done {
				found[operation.Name] = outcome{ended: operation}
			}
		}
		return nil
	})
	if err == nil {
		return found
	}
	for _, name := range names {
		if _, known := found[name]; !known {
			found[name] = outcome{err: errors.Join(errUnknownProgress, err)}
		}
	}
	return found
}

var errUnknownProgress = errors.New("its progress is unknown")
