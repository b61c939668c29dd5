package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

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

// newOperation makes the row of a change that was accepted.
func (s *Engine) newOperation(r *wire.Request, target Target) state.Operation {
	now := s.Timestamp()
	id := wire.NewID()
	name := fmt.Sprintf("operation-%d-%013x-%08x-%08x", s.Options.Now().UnixMilli(), id&0xfffffffffffff, uint32(id>>32), uint32(id))
	public := compute.Operation{
		Id: id, Name: name, SelfLink: r.Scope() + "/operations/" + name,
		OperationType: operationType(r.MethodName), TargetLink: target.Path, TargetId: target.ID,
		Status: state.StatusPending, InsertTime: now, User: "stowage@" + r.Project + ".iam.gserviceaccount.com",
		ClientOperationId: r.URL.Query().Get("requestId"),
	}
	if r.Zone != "" {
		public.Zone = wire.ZonePath(r.Project, r.Zone)
	}
	if r.Region != "" {
		public.Region = r.Scope()
	}
	row := state.Operation{
		Public: public, Method: r.MethodName,
		RequestID: requestKey(r.Project, public.ClientOperationId), Request: r.Fingerprint(),
	}
	markFault(r.Fault, &row)
	return row
}

func requestKey(project, id string) string {
	if id == "" {
		return ""
	}
	return project + "/" + id
}
