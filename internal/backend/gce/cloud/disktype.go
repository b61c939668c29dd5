package cloud

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
	"github.com/stowage-dev/stowage/internal/backend/gce/size"
)

// DiskType is a type of disks, and the sizes that its disks can have, in GiB. Max is 0 where the
// API doesn't say.
type DiskType struct {
	Name     string
	Min, Max int64
}

// DiskType reads a type, with the sizes that its disks can have in a place. A list in Stowage would
// miss new types.
func (c *Client) DiskType(ctx context.Context, at place.Place, diskType string) (DiskType, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	found, err := c.disksIn(at).Type(ctx, diskType)
	switch {
	case reason.Of(err) == reason.NotFound:
		return DiskType{}, backend.Invalid.Errorf("%s of project %s has no disks of type %s: correct gce.zones, gce.diskType or the type of the StorageClass: %w", at, c.Project, diskType, err)
	case err != nil:
		return DiskType{}, err
	}
	read := DiskType{Name: diskType, Min: 1}
	// Without sizes here, the API checks the size when it makes the disk.
	_, _ = fmt.Sscanf(found.ValidDiskSize, "%dGB-%dGB", &read.Min, &read.Max)
	return read, nil
}

// AtLeast is the size of the smallest disk with a capacity.
func (s DiskType) AtLeast(capacity resource.Quantity) (sizeGb int64, err error) {
	sizeGb = max(s.Min, size.InGib(capacity))
	if s.Max > 0 && sizeGb > s.Max {
		return 0, backend.Invalid.Errorf("disks of type %s have %dGi at most: ask for no more than that, not for %s", s.Name, s.Max, capacity.String())
	}
	return sizeGb, nil
}
