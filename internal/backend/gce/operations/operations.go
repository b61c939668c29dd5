// Package operations lists the operations of the Compute API, and waits until they have ended. Package
// cloud begins them, and knows what they mean.
package operations

import (
	"context"

	"google.golang.org/api/compute/v1"
)

// Done is the status of an operation that has ended.
const Done = "DONE"

// Scope is a zone of a project, as a client sees it. Without a zone, it has the operations of what is
// in none.
type Scope struct {
	Compute       *compute.Service
	Project, Zone string
}

// List lists the operations that match a filter.
func (s Scope) List(ctx context.Context, filter string, each func(*compute.OperationList) error) error {
	if s.Zone == "" {
		return s.Compute.GlobalOperations.List(s.Project).Filter(filter).Pages(ctx, each)
	}
	return s.Compute.ZoneOperations.List(s.Project, s.Zone).Filter(filter).Pages(ctx, each)
}
