package cloud

import (
	"context"
	"fmt"
	"math"
	"slices"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Statuses of disks.
const (
	DiskReady    = "READY"
	DiskDeleting = "DELETING"
	DiskFailed   = "FAILED"
)

// diskFields are the fields of listed disks that are read.
const diskFields googleapi.Field = "id,name,selfLink,zone,description,diskEncryptionKey/kmsKeyName,labels,labelFingerprint,sizeGb,sourceDisk,sourceSnapshot,status,type,users," +
	"lastAttachTimestamp,lastDetachTimestamp"

// gib is a GB, as Google uses the word, in bytes.
const gib = 1 << 30

// Disk is a disk as the API described it.
type Disk struct{ *compute.Disk }

// Path is how the disk is named in calls.
func (d *Disk) Path() string { return PathOf(d.SelfLink) }

// ZoneName is the zone that the disk is in.
func (d *Disk) ZoneName() string { return NameOf(d.Zone) }

// Capacity of the disk, in bytes.
func (d *Disk) Capacity() resource.Quantity {
	return CapacityOf(d.SizeGb)
}

// CapacityOf is a number of GB, as Google uses the word, in bytes. What is beyond int64 is the most that
// can be counted.
func CapacityOf(gb int64) resource.Quantity {
	return *resource.NewQuantity(min(gb, math.MaxInt64/gib)*gib, resource.BinarySI)
}

// incarnation identifies a disk among all that had or will have its name.
func (d *Disk) incarnation() string { return fmt.Sprint(d.Id) }

// DiskPath is how a disk is named in calls.
func (c *Client) DiskPath(zone, id string) string {
	return fmt.Sprintf("projects/%s/zones/%s/disks/%s", c.Project, zone, id)
}

// Disk reads the disk of a name in a zone: nil where there is none.
func (c *Client) Disk(ctx context.Context, zone, id string) (*Disk, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	found, err := c.compute.Disks.Get(c.Project, zone, id).Context(ctx).Do()
	switch {
	case ReasonOf(err) == NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &Disk{found}, nil
}

// DisksNamed finds the disks with a name in all zones of the project: a zone may have been removed
// from the backend since. A list may lag behind, so it reads the disk in each of the backend's
// zones before it returns none.
func (c *Client) DisksNamed(ctx context.Context, id string) ([]*Disk, error) {
	found, err := c.Disks(ctx, fmt.Sprintf("name = %q", id))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(one *Disk) bool { return one.Name != id })
	if len(found) > 0 {
		return found, nil
	}
	for _, zone := range c.Zones {
		one, err := c.Disk(ctx, zone, id)
		if err != nil {
			return nil, err
		}
		if one != nil {
			found = append(found, one)
		}
	}
	return found, nil
}

// Disks lists the disks in all zones that match a filter.
func (c *Client) Disks(ctx context.Context, filter string) (found []*Disk, err error) {
	err = c.compute.Disks.AggregatedList(c.Project).Filter(filter).MaxResults(c.limits.Page).
		Fields("nextPageToken", "unreachables", "items/*/warning", "items/*/disks("+diskFields+")").
		Pages(ctx, func(page *compute.DiskAggregatedList) error {
			for scope, here := range page.Items {
				if here.Warning != nil && here.Warning.Code == unreachable {
					return incomplete(scope)
				}
				for _, one := range here.Disks {
					if one.Zone != "" { // else a region's: never ours
						found = append(found, &Disk{one})
					}
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
	if ReasonOf(err) == NotFound {
		return backend.Unavailable.Errorf("there is no project %s, or the manager's credentials may not see it: "+
			"correct gce.project, in a new StorageBackend, or grant access: %w", c.Project, err)
	}
	return err
}
