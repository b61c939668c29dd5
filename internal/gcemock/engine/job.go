package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// Job is what one operation does. It is kept as JSON, and taken up again after a
// restart from Begin on: every method but Accept finds its own work done and goes on.
type Job interface {
	// Accept checks a request, and makes what can be seen at once. The store is locked.
	Accept(s *Engine) (Target, error)
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

// Target is what an operation is about.
type Target struct {
	Path string
	ID   uint64
}

// Quick is a job without a part of its own for some steps.
type Quick struct{}

// Begin implements Job.
func (Quick) Begin(*Engine, string) error { return nil }

// Work implements Job.
func (Quick) Work(context.Context, *Engine) error { return nil }

// Undo implements Job.
func (Quick) Undo(*Engine, string) {}

// operationType is what an operation of a method calls itself.
func operationType(method string) string {
	_, verb, _ := strings.Cut(method, ".")
	if verb == "resize" {
		return "resizeDisk"
	}
	return verb
}

// Changing answers a call with the operation that it starts, or that it started
// before, if it is sent again with the same id.
func Changing(read func(*wire.Request) (Job, error)) func(*Engine, *wire.Request) (any, error) {
	return func(s *Engine, r *wire.Request) (any, error) {
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
func (s *Engine) accept(r *wire.Request, job Job) (row state.Operation, err error) {
	err = s.Update(func() error {
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
			return fmt.Errorf("encoding %s: %w", r.MethodName, err)
		}
		s.Operations.Put(row.Public.SelfLink, row)
		if row.RequestID != "" {
			s.Requests[row.RequestID] = row.Public.SelfLink
		}
		s.start(row, r.Fault.Sticks())
		return nil
	})
	return row, err
}

// sentBefore finds the operation of a request that is sent again.
func (s *Engine) sentBefore(r *wire.Request) (*state.Operation, error) {
	id := r.URL.Query().Get("requestId")
	if id == "" {
		return nil, nil
	}
	if !wire.RequestUUID.MatchString(id) || id == wire.ZeroUUID {
		return nil, wire.Invalid("requestId", id, "Must be a valid UUID other than zero.")
	}
	row, found := s.Operations.Get(s.Requests[requestKey(r.Project, id)])
	if !found {
		return nil, nil
	}
	if row.Request != r.Fingerprint() {
		return nil, &wire.Error{
			Status: http.StatusBadRequest, Reason: wire.ReasonInvalid,
			Message: fmt.Sprintf("The request id '%s' was used for another request.", id),
		}
	}
	return &row, nil
}
