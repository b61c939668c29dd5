package gce

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

const ()

// sizes are what disks of a type can have, in GiB.
type sizes struct {
	diskType    string
	least, most int64
}

// sizesOf asks for the sizes of a type in a zone. New types come up, and a list of our own
// would be old.
func (c *cloud) sizesOf(ctx context.Context, zone, diskType string) (sizes, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.call)
	defer cancel()
	found, err := c.compute.DiskTypes.Get(c.project, zone, diskType).Context(ctx).Do()
	switch {
	case reasonOf(err) == notFound:
		return sizes{}, backend.Invalid.Errorf("zone %s of project %s has no disks of type %s: correct gce.zones or gce.diskType: %w", zone, c.project, diskType, err)
	case err != nil:
		return sizes{}, err
	}
	read := sizes{diskType: diskType, least: 1}
	// Without a word of the API on sizes, it says so once it is asked for a disk.
	_, _ = fmt.Sscanf(found.ValidDiskSize, "%dGB-%dGB", &read.least, &read.most)
	return read, nil
}

// atLeast is the size of the smallest disk that has a capacity.
func (s sizes) atLeast(capacity resource.Quantity) (sizeGb int64, err error) {
	sizeGb = max(s.least, inGib(capacity))
	if s.most > 0 && sizeGb > s.most {
		return 0, backend.Invalid.Errorf("disks of type %s have %dGi at most: ask for no more than that, not for %s", s.diskType, s.most, capacity.String())
	}
	return sizeGb, nil
}

// inGib is a capacity in GiB, rounded up.
func inGib(capacity resource.Quantity) int64 {
	whole := capacity.Value() / gib
	if capacity.Value()%gib > 0 {
		whole++
	}
	return whole
}
