// Package operations lists the operations of the Compute API, and waits until they have ended. Package
// cloud begins them, and knows what they mean.
package operations

import (
	"context"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend/gce/place"
)

// Done is the status of an operation that has ended.
const Done = "DONE"

// Scope is a zone or a region of a project, as a client sees it. Without a place, it has the operations of
// what is in none.
type Scope struct {
	Compute *compute.Service
	Project string
	place.Place
}

// List lists the operations that match a filter.
func (s Scope) List(ctx context.Context, filter string, each func(*compute.OperationList) error) error {
	switch {
	case s.IsRegion():
		return s.Compute.RegionOperations.List(s.Project, s.Region).Filter(filter).Pages(ctx, each)
	case s.Zone != "":
		return s.Compute.ZoneOperations.List(s.Project, s.Zone).Filter(filter).Pages(ctx, each)
	default:
		return s.Compute.GlobalOperations.List(s.Project).Filter(filter).Pages(ctx, each)
	}
}
