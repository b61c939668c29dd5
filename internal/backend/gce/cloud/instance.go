package cloud

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// scheme is what the provider ids of instances begin with.
const scheme = "gce://"

// Modes in which a disk is attached.
const (
	ReadWrite = "READ_WRITE"
	ReadOnly  = "READ_ONLY"
)

// instanceFields are the fields of instances that are read. Their metadata, which can be much
// longer, is not.
const instanceFields googleapi.Field = "id,name,selfLink,zone,status,disks(source,deviceName,mode,autoDelete,boot)"

// namesPerList is how many names one list asks for.
const namesPerList = 50

// InstanceRef names an instance.
type InstanceRef struct{ Project, Zone, Name string }

// ParseProviderID reads a provider's id, gce://PROJECT/ZONE/NAME.
func ParseProviderID(providerID string) (InstanceRef, bool) {
	rest, ours := strings.CutPrefix(providerID, scheme)
	parts := strings.Split(rest, "/")
	if !ours || len(parts) != 3 || parts[2] == "" || !ValidProject.MatchString(parts[0]) || !ValidZone.MatchString(parts[1]) || !ValidZone.MatchString(parts[2]) {
		return InstanceRef{}, false
	}
	return InstanceRef{parts[0], parts[1], parts[2]}, true
}

// ProviderID is the spec.providerID of the instance's node.
func (p InstanceRef) ProviderID() string { return scheme + p.Project + "/" + p.Zone + "/" + p.Name }

// Instance is an instance as the API described it.
type Instance struct {
	*compute.Instance
	At InstanceRef
}

// attachedDisk finds a disk with one of some paths among those of the instance: nil where it isn't attached.
func (i *Instance) attachedDisk(paths ...string) *compute.AttachedDisk {
	for _, one := range i.Disks {
		if slices.Contains(paths, PathOf(one.Source)) {
			return one
		}
	}
	return nil
}

// deviceNamed finds the disk with a device name on the instance: nil where there is none.
func (i *Instance) deviceNamed(name string) *compute.AttachedDisk {
	for _, one := range i.Disks {
		if one.DeviceName == name {
			return one
		}
	}
	return nil
}

// instance reads an instance: nil where there is none. Absence counts only if the zone can be
// listed: without permission the API answers that there is no instance.
func (c *Client) instance(ctx context.Context, at InstanceRef) (*Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	found, err := c.compute.Instances.Get(at.Project, at.Zone, at.Name).Fields(instanceFields).Context(ctx).Do()
	switch {
	case err == nil:
		return &Instance{found, at}, nil
	case reason.Of(err) != reason.NotFound:
		return nil, err
	}
	return c.listed(ctx, at)
}

// listed looks for an instance in its zone's list: nil where that doesn't have it.
func (c *Client) listed(ctx context.Context, at InstanceRef) (found *Instance, err error) {
	call := c.compute.Instances.List(at.Project, at.Zone).Filter(fmt.Sprintf("name = %q", at.Name)).
		Fields("nextPageToken", "warning", "items("+instanceFields+")")
	err = call.Pages(ctx, func(page *compute.InstanceList) error {
		if page.Warning != nil && page.Warning.Code == unreachable {
			return incomplete("zone " + at.Zone)
		}
		// A page may have nothing, and another come.
		for _, one := range page.Items {
			found = &Instance{one, at}
		}
		return nil
	})
	if reason.Of(err) == reason.NotFound {
		err = backend.Unavailable.Errorf("there is no zone %s in project %s, or the manager's credentials may not see it: %w", at.Zone, at.Project, err)
	}
	return found, err
}

// instances lists the instances in all zones of the project that match a filter.
func (c *Client) instances(ctx context.Context, filter string) (found []*Instance, err error) {
	call := c.compute.Instances.AggregatedList(c.Project).MaxResults(c.limits.Page).
		Fields("nextPageToken", "unreachables", "items/*/warning", "items/*/instances("+instanceFields+")")
	if filter != "" {
		call = call.Filter(filter)
	}
	err = call.Pages(ctx, func(page *compute.InstanceAggregatedList) error {
		for scope, here := range page.Items {
			if here.Warning != nil && here.Warning.Code == unreachable {
				return incomplete(scope)
			}
			for _, one := range here.Instances {
				found = append(found, &Instance{one, InstanceRef{c.Project, NameOf(one.Zone), one.Name}})
			}
		}
		return checkReached(page.Unreachables)
	})
	return found, c.aboutProject(err)
}

// InstancesAt lists the named instances, zone by zone.
func (c *Client) InstancesAt(ctx context.Context, places map[InstanceRef]bool) (found []*Instance, err error) {
	names := map[string][]string{}
	for at := range places {
		if at.Project == c.Project {
			names[at.Zone] = append(names[at.Zone], fmt.Sprintf("(name = %q)", at.Name))
		}
	}
	for zone, filters := range names {
		slices.Sort(filters)
		for some := range slices.Chunk(filters, namesPerList) {
			err := c.compute.Instances.List(c.Project, zone).Filter(strings.Join(some, " OR ")).MaxResults(c.limits.Page).
				Fields("nextPageToken", "warning", "items("+instanceFields+")").
				Pages(ctx, func(page *compute.InstanceList) error {
					if page.Warning != nil && page.Warning.Code == unreachable {
						return incomplete("zone " + zone)
					}
					for _, one := range page.Items {
						found = append(found, &Instance{one, InstanceRef{c.Project, zone, one.Name}})
					}
					return nil
				})
			if err != nil {
				return nil, fmt.Errorf("zone %s: %w", zone, err)
			}
		}
	}
	return found, nil
}

// ParseInstanceLink reads the link of an instance that has a disk.
func ParseInstanceLink(link string) (InstanceRef, bool) {
	parts := strings.Split(PathOf(link), "/")
	if len(parts) != 6 || parts[2] != "zones" || parts[4] != "instances" {
		return InstanceRef{}, false
	}
	return InstanceRef{parts[1], parts[3], parts[5]}, true
}

// InstancesOf returns the instances that a node may be: the one that its provider's id names or,
// without a provider's id, all with its name. The id of another provider names none.
func (c *Client) InstancesOf(ctx context.Context, node backend.NodeIdentity) ([]*Instance, error) {
	if node.ProviderID == "" {
		if !ValidZone.MatchString(node.Name) {
			return nil, nil
		}
		return c.instances(ctx, fmt.Sprintf("name = %q", node.Name))
	}
	at, readable := ParseProviderID(node.ProviderID)
	switch {
	case !strings.HasPrefix(node.ProviderID, scheme):
		return nil, nil
	case !readable:
		return nil, backend.Invalid.Errorf("node %s has the providerID %q, which is none of the form gce://PROJECT/ZONE/NAME", node.Name, node.ProviderID)
	}
	found, err := c.instance(ctx, at)
	if found == nil || err != nil {
		return nil, err
	}
	return []*Instance{found}, nil
}

// The names of zones, and of instances, and the ids of projects that Google allows.
var (
	ValidZone    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	ValidProject = regexp.MustCompile(`^[a-z0-9.:-]+$`)
)

// attachBasis is what attaching and detaching are decided on. It changes with each attach and
// detach, so the same request later is a new change.
func attachBasis(found *Disk, on *Instance) []string {
	return []string{found.Path(), found.incarnation(), on.At.ProviderID(), fmt.Sprint(on.Id), found.LastAttachTimestamp, found.LastDetachTimestamp}
}
