package gce

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/stowage-dev/stowage/internal/backend"
)

// scheme is what the provider ids of instances begin with.
const scheme = "gce://"

// Modes in which a disk is attached.
const (
	readWrite = "READ_WRITE"
	readOnly  = "READ_ONLY"
)

// usedOfInstances are the fields that are used of instances. Their metadata, which can be
// much longer, is not.
const usedOfInstances googleapi.Field = "id,name,selfLink,zone,status,disks(source,deviceName,mode,autoDelete,boot)"

// listedAtOnce is how many names a list is asked for at once.
const listedAtOnce = 50

// place is where an instance is.
type place struct{ project, zone, name string }

// placeOf reads a provider's id, gce://PROJECT/ZONE/NAME.
func placeOf(providerID string) (place, bool) {
	rest, ours := strings.CutPrefix(providerID, scheme)
	parts := strings.Split(rest, "/")
	if !ours || len(parts) != 3 || parts[2] == "" || !apiProject.MatchString(parts[0]) || !zoneName.MatchString(parts[1]) || !zoneName.MatchString(parts[2]) {
		return place{}, false
	}
	return place{parts[0], parts[1], parts[2]}, true
}

func (p place) providerID() string { return scheme + p.project + "/" + p.zone + "/" + p.name }

// instance is one that was found.
type instance struct {
	*compute.Instance
	at place
}

// attachedDisk finds a disk among those of the instance: nil where it isn't.
func (i *instance) attachedDisk(path string) *compute.AttachedDisk {
	for _, one := range i.Disks {
		if pathOf(one.Source) == path {
			return one
		}
	}
	return nil
}

// deviceNamed finds what has a device name on the instance: nil where nothing has.
func (i *instance) deviceNamed(name string) *compute.AttachedDisk {
	for _, one := range i.Disks {
		if one.DeviceName == name {
			return one
		}
	}
	return nil
}

// instance reads an instance: nil where there is none. That is believed where the zone
// shows its instances: who may see nothing is told that there is nothing.
func (c *cloud) instance(ctx context.Context, at place) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.call)
	defer cancel()
	found, err := c.compute.Instances.Get(at.project, at.zone, at.name).Fields(usedOfInstances).Context(ctx).Do()
	switch {
	case err == nil:
		return &instance{found, at}, nil
	case reasonOf(err) != notFound:
		return nil, err
	}
	return c.listed(ctx, at)
}

// listed looks for an instance in its zone's list: nil where that doesn't have it.
func (c *cloud) listed(ctx context.Context, at place) (found *instance, err error) {
	call := c.compute.Instances.List(at.project, at.zone).Filter(fmt.Sprintf("name = %q", at.name)).
		Fields("nextPageToken", "warning", "items("+usedOfInstances+")")
	err = call.Pages(ctx, func(page *compute.InstanceList) error {
		if page.Warning != nil && page.Warning.Code == unreachable {
			return incomplete("zone " + at.zone)
		}
		// A page may have nothing, and another come.
		for _, one := range page.Items {
			found = &instance{one, at}
		}
		return nil
	})
	if reasonOf(err) == notFound {
		err = backend.Unavailable.Errorf("there is no zone %s in project %s, or it isn't shown to whom the manager signs in as: %w", at.zone, at.project, err)
	}
	return found, err
}

// instances lists the instances, in all zones of the project, that a filter lets through.
func (c *cloud) instances(ctx context.Context, filter string) (found []*instance, err error) {
	call := c.compute.Instances.AggregatedList(c.project).MaxResults(c.limits.page).
		Fields("nextPageToken", "unreachables", "items/*/warning", "items/*/instances("+usedOfInstances+")")
	if filter != "" {
		call = call.Filter(filter)
	}
	err = call.Pages(ctx, func(page *compute.InstanceAggregatedList) error {
		for scope, here := range page.Items {
			if here.Warning != nil && here.Warning.Code == unreachable {
				return incomplete(scope)
			}
			for _, one := range here.Instances {
				found = append(found, &instance{one, place{c.project, nameOf(one.Zone), one.Name}})
			}
		}
		return checkReached(page.Unreachables)
	})
	return found, c.aboutProject(err)
}

// instancesAt lists the instances at places, zone by zone.
func (c *cloud) instancesAt(ctx context.Context, places map[place]bool) (found []*instance, err error) {
	names := map[string][]string{}
	for at := range places {
		if at.project == c.project {
			names[at.zone] = append(names[at.zone], fmt.Sprintf("(name = %q)", at.name))
		}
	}
	for zone, wanted := range names {
		slices.Sort(wanted)
		for some := range slices.Chunk(wanted, listedAtOnce) {
			err := c.compute.Instances.List(c.project, zone).Filter(strings.Join(some, " OR ")).MaxResults(c.limits.page).
				Fields("nextPageToken", "warning", "items("+usedOfInstances+")").
				Pages(ctx, func(page *compute.InstanceList) error {
					if page.Warning != nil && page.Warning.Code == unreachable {
						return incomplete("zone " + zone)
					}
					for _, one := range page.Items {
						found = append(found, &instance{one, place{c.project, zone, one.Name}})
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

// placeOfUser reads the link of an instance that has a disk.
func placeOfUser(link string) (place, bool) {
	parts := strings.Split(pathOf(link), "/")
	if len(parts) != 6 || parts[2] != "zones" || parts[4] != "instances" {
		return place{}, false
	}
	return place{parts[1], parts[3], parts[5]}, true
}

// instancesOf are those that a node may be: the one that its provider's id names or,
// where that isn't known any more, all that have its name. What the id of another
// provider names is none.
func (c *cloud) instancesOf(ctx context.Context, node backend.NodeIdentity) ([]*instance, error) {
	if node.ProviderID == "" {
		if !zoneName.MatchString(node.Name) {
			return nil, nil
		}
		return c.instances(ctx, fmt.Sprintf("name = %q", node.Name))
	}
	at, readable := placeOf(node.ProviderID)
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
	return []*instance{found}, nil
}

var zoneName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

var apiProject = regexp.MustCompile(`^[a-z0-9.:-]+$`)
