package gce

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Statuses of disks.
const (
	diskReady    = "READY"
	diskDeleting = "DELETING"
	diskFailed   = "FAILED"
)

// usedOfDisks are the fields that are used of disks that are listed.
const usedOfDisks googleapi.Field = "id,name,selfLink,zone,description,labels,labelFingerprint,sizeGb,status,type,users," +
	"lastAttachTimestamp,lastDetachTimestamp"

// gib is what Google calls a GB.
const gib = 1 << 30

// disk is one that was found.
type disk struct{ *compute.Disk }

func (d *disk) path() string { return pathOf(d.SelfLink) }
func (d *disk) zone() string { return nameOf(d.Zone) }

func (d *disk) capacity() resource.Quantity {
	return *resource.NewQuantity(d.SizeGb*gib, resource.BinarySI)
}

// incarnation tells a disk from others that had or will have its name.
func (d *disk) incarnation() string { return fmt.Sprint(d.Id) }

// diskPath is how a disk is named in calls.
func (c *cloud) diskPath(zone, id string) string {
	return fmt.Sprintf("projects/%s/zones/%s/disks/%s", c.project, zone, id)
}

// disk reads the disk of a name in a zone: nil where there is none.
func (c *cloud) disk(ctx context.Context, zone, id string) (*disk, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.call)
	defer cancel()
	found, err := c.compute.Disks.Get(c.project, zone, id).Context(ctx).Do()
	switch {
	case reasonOf(err) == notFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &disk{found}, nil
}

// disksNamed finds the disks of a name in all zones of the project: a zone may have been
// taken from the backend since. A list may lag behind, so that the backend's own zones
// are asked one by one before it is believed that there is none.
func (c *cloud) disksNamed(ctx context.Context, id string) ([]*disk, error) {
	found, err := c.disks(ctx, fmt.Sprintf("name = %q", id))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(one *disk) bool { return one.Name != id })
	if len(found) > 0 {
		return found, nil
	}
	for _, zone := range c.zones {
		one, err := c.disk(ctx, zone, id)
		if err != nil {
			return nil, err
		}
		if one != nil {
			found = append(found, one)
		}
	}
	return found, nil
}

// disks lists the disks, in all zones, that a filter lets through.
func (c *cloud) disks(ctx context.Context, filter string) (found []*disk, err error) {
	err = c.compute.Disks.AggregatedList(c.project).Filter(filter).MaxResults(c.limits.page).
		Fields("nextPageToken", "unreachables", "items/*/warning", "items/*/disks("+usedOfDisks+")").
		Pages(ctx, func(page *compute.DiskAggregatedList) error {
			for scope, here := range page.Items {
				if here.Warning != nil && here.Warning.Code == unreachable {
					return incomplete(scope)
				}
				for _, one := range here.Disks {
					if one.Zone != "" { // else a region's: never ours
						found = append(found, &disk{one})
					}
				}
			}
			return checkReached(page.Unreachables)
		})
	return found, c.aboutProject(err)
}

// unreachable is what a list says of zones that it couldn't ask.
const unreachable = "UNREACHABLE"

func checkReached(unreachables []string) error {
	if len(unreachables) > 0 {
		return incomplete(unreachables[0])
	}
	return nil
}

func incomplete(scope string) error {
	return backend.Unavailable.Errorf("the Compute API can't tell now what is in %s: it is asked again", scope)
}

// aboutProject says what it means that a list across a project isn't found.
func (c *cloud) aboutProject(err error) error {
	if reasonOf(err) == notFound {
		return backend.Unavailable.Errorf("there is no project %s, or it isn't shown to whom the manager signs in as: "+
			"correct gce.project, in a new StorageBackend, or grant access: %w", c.project, err)
	}
	return err
}
