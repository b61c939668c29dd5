package gcemock

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// job is what one operation does. It is kept as JSON, and taken up again after a
// restart from Begin on: every method but Accept finds its own work done and goes on.
type job interface {
	// Accept checks a request, and makes what can be seen at once. The store is locked.
	Accept(s *Engine) (target, error)
	// Locks are the paths that no other job may touch from Begin to Finish.
	Locks() []string
	// Begin checks again, since other jobs ran meanwhile, and takes what must not be
	// taken twice. The store is locked.
	Begin(s *Engine, operation string) error
	// Work does what takes time: files and devices. The store isn't locked.
	Work(ctx context.Context, s *Engine) error
	// Finish makes the change seen. The store is locked.
	Finish(s *Engine)
	// Undo takes back what Accept and Begin did. The store is locked.
	Undo(s *Engine, operation string)
}

// target is what an operation is about.
type target struct {
	path string
	id   uint64
}

// quick is a job without a part of its own for some steps.
type quick struct{}

func (quick) Begin(*Engine, string) error         { return nil }
func (quick) Work(context.Context, *Engine) error { return nil }
func (quick) Undo(*Engine, string)                {}

// operationType is what an operation of a method calls itself.
func operationType(method string) string {
	_, verb, _ := strings.Cut(method, ".")
	if verb == "resize" {
		return "resizeDisk"
	}
	return verb
}

// changing answers a call with the operation that it starts, or that it started
// before, if it is sent again with the same id.
func changing(read func(*request) (job, error)) func(*Engine, *request) (any, error) {
	return func(s *Engine, r *request) (any, error) {
		job, err := read(r)
		if err != nil {
			return nil, err
		}
		row, err := s.accept(r, job)
		if err != nil {
			return nil, err
		}
		return operationView(r, row), nil
	}
}

// accept starts an operation. If it can't be written, the client hears of it, and the
// operation goes its way all the same: what it changed holds.
func (s *Engine) accept(r *request, job job) (row operation, err error) {
	err = s.update(func() error {
		before, err := s.sentBefore(r)
		if before != nil || err != nil {
			if before != nil {
				row = *before
			}
			return err
		}
		target, err := job.Accept(s)
		if err != nil {
			return err
		}
		row = s.newOperation(r, target)
		if row.Job, err = json.Marshal(job); err != nil {
			return fmt.Errorf("encoding %s: %w", r.method, err)
		}
		s.operations.put(row.Public.SelfLink, row)
		if row.RequestID != "" {
			s.requests[row.RequestID] = row.Public.SelfLink
		}
		s.start(row, r.fault.sticks())
		return nil
	})
	return row, err
}

// sentBefore finds the operation of a request that is sent again.
func (s *Engine) sentBefore(r *request) (*operation, error) {
	id := r.URL.Query().Get("requestId")
	if id == "" {
		return nil, nil
	}
	if !requestUUID.MatchString(id) || id == zeroUUID {
		return nil, errInvalid("requestId", id, "Must be a valid UUID other than zero.")
	}
	row, found := s.operations.get(s.requests[requestKey(r.project, id)])
	if !found {
		return nil, nil
	}
	if row.Request != r.fingerprint() {
		return nil, &apiError{
			Status: http.StatusBadRequest, Reason: reasonInvalid,
			Message: fmt.Sprintf("The request id '%s' was used for another request.", id),
		}
	}
	return &row, nil
}
