package engine

import (
	"context"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// waitAtMost is how long Google has a client wait for an operation at once.
const waitAtMost = 2 * time.Minute

// operationView is the operation as a client sees it.
func operationView(r *wire.Request, row state.Operation) *compute.Operation {
	view := row.Public
	view.Kind = "compute#operation"
	view.SelfLink = r.Link(view.SelfLink)
	view.Zone = r.Link(view.Zone)
	view.Region = r.Link(view.Region)
	view.TargetLink = r.Link(view.TargetLink)
	view.ForceSendFields = []string{"Progress"}
	return &view
}

func (s *Engine) getOperation(r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	row, err := s.findOperation(r)
	if err != nil {
		return nil, err
	}
	return operationView(r, row), nil
}

func (s *Engine) findOperation(r *wire.Request) (state.Operation, error) {
	path := r.Named("operations", "operation")
	row, found := s.Operations.Get(path)
	if !found {
		return state.Operation{}, wire.NotFound(path)
	}
	return row, nil
}

// waitOperation answers once the operation has ended, or after a while as it is then.
func (s *Engine) waitOperation(r *wire.Request) (any, error) {
	// With the lock held, so that it doesn't end between the check and the wait.
	s.Lock()
	row, err := s.findOperation(r)
	ended := s.waiters.ended(row.Public.SelfLink, err != nil || row.Public.Status == state.StatusDone)
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
		return nil, wire.Closed()
	}
	return s.getOperation(r)
}

// operationsBelow lists the operations of a zone or region, or of a whole project.
func (s *Engine) operationsBelow(r *wire.Request, scope string) (all []wire.Listed[*compute.Operation]) {
	for _, path := range s.Operations.Below(scope) {
		view := operationView(r, s.Operations.Rows[path])
		all = append(all, wire.Listed[*compute.Operation]{Scope: wire.ScopeOf(path), Name: view.Name, Created: view.InsertTime, Item: view})
	}
	return all
}

func (s *Engine) listOperations(r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.Scope() + "/operations"
	return wire.List(r, "operationList", id, s.operationsBelow(r, id))
}

func (s *Engine) aggregateOperations(r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	scopes := append(s.Options.Locations.Scopes(), wire.GlobalScope)
	return wire.AggregatedList(r, "operationAggregatedList", "operations", scopes, s.operationsBelow(r, wire.ProjectPath(r.Project)))
}
