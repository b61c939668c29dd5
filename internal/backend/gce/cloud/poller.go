package cloud

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

// poller waits for operations, for all callers: in each zone one list at a time asks for all of
// them, however many there are.
type poller struct {
	mu    sync.Mutex
	zones map[scope]callers
}

// scope is a zone of a project, as a client sees it.
type scope struct {
	compute       *compute.Service
	project, zone string
}

// callers are the waiting calls, by the name of the operation.
type callers map[string][]chan<- outcome

// outcome is an operation that has ended, or why its end is unknown.
type outcome struct {
	ended *compute.Operation
	err   error
}

func newPoller() *poller { return &poller{zones: map[scope]callers{}} }

// Polled is the number of zones in which calls wait for operations.
func (k *Clients) Polled() int {
	k.poller.mu.Lock()
	defer k.poller.mu.Unlock()
	return len(k.poller.zones)
}

// await returns an operation once it has ended, or an error if the context ends first.
func (w *poller) await(ctx context.Context, c *Client, zone, name string) (*compute.Operation, error) {
	at, answer := scope{c.compute, c.Project, zone}, make(chan outcome, 1)
	w.add(ctx, c, at, name, answer)
	select {
	case got := <-answer:
		return got.ended, got.err
	case <-ctx.Done():
		w.remove(at, name, answer)
		return nil, ctx.Err()
	}
}

func (w *poller) add(ctx context.Context, c *Client, at scope, name string, answer chan<- outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	here, polled := w.zones[at]
	if !polled {
		here = callers{}
		w.zones[at] = here
		// It polls for all calls, and longer than the first of them may wait.
		go w.poll(context.WithoutCancel(ctx), c, at)
	}
	here[name] = append(here[name], answer)
}

func (w *poller) remove(at scope, name string, answer chan<- outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	here := w.zones[at]
	if here[name] == nil {
		return // the answer came at this moment
	}
	here[name] = slices.DeleteFunc(here[name], func(other chan<- outcome) bool { return other == answer })
	if len(here[name]) == 0 {
		delete(here, name)
	}
}

// poll lists the operations of a zone until no call waits for any.
func (w *poller) poll(ctx context.Context, c *Client, at scope) {
	tick := time.NewTicker(c.limits.Poll)
	defer tick.Stop()
	for range tick.C {
		names := w.pending(at)
		if names == nil {
			return
		}
		for some := range slices.Chunk(names, namesPerList) {
			w.deliver(at, some, c.ended(ctx, at.zone, some))
		}
	}
}

// pending returns the names of the operations that calls wait for; nil ends the poll.
func (w *poller) pending(at scope) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.zones[at] {
		names = append(names, name)
	}
	if names == nil {
		delete(w.zones, at)
	}
	slices.Sort(names)
	return names
}

// deliver sends the outcome of ended operations to their callers. A list that failed goes to all
// callers, which decide when to repeat.
func (w *poller) deliver(at scope, names []string, ended map[string]outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		known, has := ended[name]
		if !has {
			continue
		}
		for _, caller := range w.zones[at][name] {
			caller <- known
		}
		delete(w.zones[at], name)
	}
}

// ended returns the operations of a zone that have ended. One that isn't listed yet counts as
// running.
func (c *Client) ended(ctx context.Context, zone string, names []string) map[string]outcome {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	filters, found := []string{}, map[string]outcome{}
	for _, name := range names {
		filters = append(filters, fmt.Sprintf("(name = %q)", name))
	}
	err := c.compute.ZoneOperations.List(c.Project, zone).Filter(strings.Join(filters, " OR ")).
		Pages(ctx, func(page *compute.OperationList) error {
			for _, operation := range page.Items {
				if operation.Status == operationDone {
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
