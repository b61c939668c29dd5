package cloud

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
	"github.com/stowage-dev/stowage/internal/backend/gce/size"
)

// Statuses of disks.
const (
	DiskReady    = "READY"
	DiskDeleting = "DELETING"
	DiskFailed   = "FAILED"
)

// Access modes of Hyperdisks that several instances can have. Without one, a disk has one writer or, unless it is a
// Hyperdisk, many readers.
const (
	WrittenByMany = "READ_WRITE_MANY"
	ReadByMany    = "READ_ONLY_MANY"
)

// diskFields are the fields of listed disks that are read.
const diskFields googleapi.Field = "id,name,selfLink,zone,region,replicaZones,description,diskEncryptionKey/kmsKeyName,labels,labelFingerprint,sizeGb,sourceDisk,sourceImage,sourceImageId,sourceSnapshot,sourceSnapshotId,status,storagePool,type,users," +
	"lastAttachTimestamp,lastDetachTimestamp"

// Disk is a disk as the API described it.
type Disk struct{ *compute.Disk }

// Path is how the disk is named in calls.
func (d *Disk) Path() string { return PathOf(d.SelfLink) }

// At is where the disk is.
func (d *Disk) At() place.Place { return place.Of(d.Disk) }

// Zones are those whose instances can have the disk.
func (d *Disk) Zones() []string { return place.ZonesOf(d.Disk) }

// In is for people: the zones that the disk is in.
func (d *Disk) In() string { return "zone " + strings.Join(d.Zones(), " and ") }

// Capacity of the disk, in bytes.
func (d *Disk) Capacity() resource.Quantity {
	return size.Of(d.SizeGb)
}

// IsWrittenByMany reports whether several instances can write the disk.
func (d *Disk) IsWrittenByMany() bool { return d.AccessMode == WrittenByMany }

// incarnation identifies a disk among all that had or will have its name.
func (d *Disk) incarnation() string { return fmt.Sprint(d.Id) }

// DiskPath is how a disk is named in calls.
func (c *Client) DiskPath(at place.Place, id string) string {
	return at.Path(c.Project) + "/disks/" + id
}

// DiskPaths are how a disk is named that an instance in a zone may have: it is in the zone, or in its region.
func (c *Client) DiskPaths(zone, id string) []string {
	return []string{c.DiskPath(place.Zone(zone), id), c.DiskPath(place.RegionOf(zone), id)}
}

func (c *Client) disksIn(at place.Place) place.Disks {
	return place.Disks{Compute: c.compute, Project: c.Project, Place: at}
}

// Places are the zones of the backend, and their regions.
func (c *Client) Places() []place.Place { return place.Around(c.Zones...) }

// Disk reads the disk of a name in a place: nil where there is none.
func (c *Client) Disk(ctx context.Context, at place.Place, id string) (*Disk, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	found, err := c.disksIn(at).Get(ctx, id)
	switch {
	case reason.Of(err) == reason.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &Disk{found}, nil
}

// DisksNamed finds the disks with a name in all zones and regions of the project: a zone may have been
// removed from the backend since. A list may lag behind, so it reads the disk in each of the backend's
// places before it returns none.
func (c *Client) DisksNamed(ctx context.Context, id string) ([]*Disk, error) {
	found, err := c.Disks(ctx, fmt.Sprintf("name = %q", id))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(one *Disk) bool { return one.Name != id })
	if len(found) > 0 {
		slices.SortFunc(found, func(one, other *Disk) int { return cmp.Compare(one.Path(), other.Path()) })
		return found, nil
	}
	return c.Complete(ctx, id, nil, c.Places()...)
}

// Complete adds to some disks of a name those in other places. The cloud may have such a place no more.
func (c *Client) Complete(ctx context.Context, id string, found []*Disk, places ...place.Place) ([]*Disk, error) {
	for _, at := range places {
		if slices.ContainsFunc(found, func(one *Disk) bool { return one.At() == at }) {
			continue
		}
		one, err := c.Disk(ctx, at, id)
		switch {
		case reason.IsNoZone(err):
			continue
		case err != nil:
			return nil, err
		case one != nil:
			found = append(found, one)
		}
	}
	return found, nil
}

// Disks lists the disks in all zones and regions that match a filter.
func (c *Client) Disks(ctx context.Context, filter string) (found []*Disk, err error) {
	err = c.compute.Disks.AggregatedList(c.Project).Filter(filter).MaxResults(c.limits.Page).
		Fields("nextPageToken", "unreachables", "items/*/warning", "items/*/disks("+diskFields+")").
		Pages(ctx, func(page *compute.DiskAggregatedList) error {
			for scope, here := range page.Items {
				if here.Warning != nil && here.Warning.Code == unreachable {
					return incomplete(scope)
				}
				for _, one := range here.Disks {
					found = append(found, &Disk{one})
				}
			}
			return checkReached(page.Unreachables)
		})
	return found, c.aboutProject(err)
}

// unreachable marks zones that a list could not read.
const unreachable = "UNREACHABLE"

func checkReached(unreachables []string) error {
	if len(unreachables) > 0 {
		return incomplete(unreachables[0])
	}
	return nil
}

func incomplete(scope string) error {
	return backend.Unavailable.Errorf("the Compute API can't list %s now: it is tried again", scope)
}

// aboutProject explains NotFound for a list across a project.
func (c *Client) aboutProject(err error) error {
	if reason.Of(err) == reason.NotFound {
		return backend.Unavailable.Errorf("there is no project %s, or the manager's credentials may not see it: "+
			"correct gce.project, in a new StorageBackend, or grant access: %w", c.Project, err)
	}
	return err
}
