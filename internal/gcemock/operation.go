package gcemock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"
)

// waitAtMost is how long Google has a client wait for an operation at once.
const waitAtMost = 2 * time.Minute

// operationView is the operation as a client sees it.
func operationView(r *request, row operation) *compute.Operation {
	view := row.Public
	view.Kind = "compute#operation"
	view.SelfLink = r.link(view.SelfLink)
	view.Zone = r.link(view.Zone)
	view.Region = r.link(view.Region)
	view.TargetLink = r.link(view.TargetLink)
	view.ForceSendFields = []string{"Progress"}
	return &view
}

func (s *Engine) getOperation(r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, err := s.findOperation(r)
	if err != nil {
		return nil, err
	}
	return operationView(r, row), nil
}

func (s *Engine) findOperation(r *request) (operation, error) {
	path := r.named("operations", "operation")
	row, found := s.operations.get(path)
	if !found {
		return operation{}, errNotFound(path)
	}
	return row, nil
}

// waitOperation answers once the operation has ended, or after a while as it is then.
func (s *Engine) waitOperation(r *request) (any, error) {
	// With the lock held, so that it doesn't end between being seen and waited for.
	s.Lock()
	row, err := s.findOperation(r)
	ended := s.waiting.ended(row.Public.SelfLink, err != nil || row.Public.Status == statusDone)
	s.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitAtMost)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-s.ctx.Done():
		return nil, errClosed()
	}
	return s.getOperation(r)
}

func (s *Engine) listOperations(r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	var all []listed[*compute.Operation]
	for _, path := range s.operations.below(r.scope() + "/operations") {
		view := operationView(r, s.operations.rows[path])
		all = append(all, listed[*compute.Operation]{name: view.Name, created: view.InsertTime, item: view})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := r.scope() + "/operations"
	return &compute.OperationList{
		Kind: "compute#operationList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id),
	}, nil
}

// newOperation makes the row of a change that was accepted.
func (s *Engine) newOperation(r *request, target target) operation {
	now := s.timestamp()
	id := newID()
	name := fmt.Sprintf("operation-%d-%013x-%08x-%08x", s.options.Now().UnixMilli(), id&0xfffffffffffff, uint32(id>>32), uint32(id))
	public := compute.Operation{
		Id: id, Name: name, SelfLink: r.scope() + "/operations/" + name,
		OperationType: operationType(r.method), TargetLink: target.path, TargetId: target.id,
		Status: statusPending, InsertTime: now, User: "stowage@" + r.project + ".iam.gserviceaccount.com",
		ClientOperationId: r.URL.Query().Get("requestId"),
	}
	if r.zone != "" {
		public.Zone = zonePath(r.project, r.zone)
	}
	if r.region != "" {
		public.Region = r.scope()
	}
	row := operation{
		Public: public, Method: r.method,
		RequestID: requestKey(r.project, public.ClientOperationId), Request: r.fingerprint(),
	}
	markFault(r.fault, &row)
	return row
}

func requestKey(project, id string) string {
	if id == "" {
		return ""
	}
	return project + "/" + id
}

// waiting wakes those who wait for operations.
type waiting struct {
	*sync.Mutex
	channels map[string]chan struct{}
}

func newWaiting() waiting { return waiting{Mutex: &sync.Mutex{}, channels: map[string]chan struct{}{}} }

// ended returns a channel that is closed once an operation has ended.
func (w waiting) ended(path string, already bool) <-chan struct{} {
	w.Lock()
	defer w.Unlock()
	channel, found := w.channels[path]
	if !found {
		channel = make(chan struct{})
		if already {
			close(channel)
		} else {
			w.channels[path] = channel
		}
	}
	return channel
}

func (w waiting) wake(path string) {
	w.Lock()
	defer w.Unlock()
	if channel, found := w.channels[path]; found {
		close(channel)
		delete(w.channels, path)
	}
}
