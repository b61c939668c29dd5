// Package zones chooses where new disks are made. It calls no API: which zones there are, the backend's spec says.
package zones

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/digest"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/storagepool"
)

// Zones are those in which a backend makes disks.
type Zones struct {
	Backend string
	Names   []string
	// Pools are those that the class names: then only their zones count. Nil: any zone will do.
	Pools storagepool.Pools
}

// For chooses the zone of a new disk: that of the disk that it copies, its pod's, or else one that the
// class allows. It computes the last one from the id, so disks spread, and a repeat chooses the same zone
// even if other zones were added or removed.
func (z Zones) For(request backend.Request, copied *cloud.Disk) (string, error) {
	if copied != nil {
		return z.ofCopy(copied, request)
	}
	if request.Node != nil {
		return z.of(request.Node)
	}
	allowed, err := z.usable(request)
	if err != nil {
		return "", err
	}
	return spread(request, allowed), nil
}

// Each are the zones of a volume that has a disk in each: all that the class allows.
func (z Zones) Each(request backend.Request) ([]string, error) {
	if request.Node != nil {
		if _, err := z.of(request.Node); err != nil {
			return nil, err
		}
	}
	return z.usable(request)
}

// usable are the zones that a request's class allows, and has storage pools in if it names some.
func (z Zones) usable(request backend.Request) ([]string, error) {
	allowed := z.allowed(request)
	if len(allowed) == 0 {
		return nil, backend.Invalid.Errorf("none of the zones of backend %s (%s) is within the allowedTopologies of the claim's StorageClass: "+
			"add one to gce.zones, or use another class; zones go by the label %s", z.Backend, strings.Join(z.Names, ", "), corev1.LabelTopologyZone)
	}
	pooled := slices.DeleteFunc(slices.Clone(allowed), func(zone string) bool { return !z.Pools.Allow(zone) })
	if len(pooled) == 0 {
		return nil, backend.Invalid.Errorf("the StorageClass has storage pools in zones %.300s, and none in those where backend %s makes its disks (%s): "+
			"use a class with a pool there in its parameter %s", z.Pools.Zones(), z.Backend, strings.Join(allowed, ", "), storagepool.Parameter)
	}
	return pooled, nil
}

// Pair chooses the two zones of a new disk that is replicated: the one that For chose, and another of its region. It
// computes that from the id, too. A copy of such a disk is in the zones of its source.
func (z Zones) Pair(request backend.Request, zone string, copied *cloud.Disk) ([]string, error) {
	if copied != nil && copied.At().IsRegion() {
		return copied.Zones(), nil
	}
	region := place.RegionOf(zone)
	others := slices.DeleteFunc(z.allowed(request), func(other string) bool { return other == zone || place.RegionOf(other) != region })
	if len(others) == 0 {
		return nil, backend.Invalid.Errorf("a disk that is replicated needs two zones, and backend %s has no other zone of %s than %s that the claim's StorageClass allows: "+
			"add one to gce.zones and to the allowedTopologies of the class, or use another class", z.Backend, region, zone)
	}
	return []string{zone, spread(request, others)}, nil
}

// allowed are the zones that a request's class allows.
func (z Zones) allowed(request backend.Request) []string {
	return slices.DeleteFunc(slices.Clone(z.Names), func(zone string) bool { return !backend.Allows(request.Topologies, nodeIn(zone)) })
}

// spread picks a zone by the id of a volume.
func spread(request backend.Request, zones []string) string {
	return slices.MaxFunc(zones, func(one, other string) int {
		return cmp.Compare(digest.Of(request.ID, one), digest.Of(request.ID, other))
	})
}

func (z Zones) of(node *corev1.Node) (string, error) {
	zone := node.Labels[corev1.LabelTopologyZone]
	switch {
	case zone == "":
		return "", backend.WrongNode.Errorf("node %s has no label %s, so it is unknown which disks it can have: "+
			"label it with the zone of its instance", node.Name, corev1.LabelTopologyZone)
	case !slices.Contains(z.Names, zone):
		return "", backend.WrongNode.Errorf("node %s is in zone %s, and backend %s makes disks in %s only: so that pods are placed there, "+
			"let the StorageClass have allowedTopologies with %s in them, or add the zone to gce.zones",
			node.Name, zone, z.Backend, strings.Join(z.Names, ", "), corev1.LabelTopologyZone)
	case !z.Pools.Allow(zone):
		return "", backend.WrongNode.Errorf("node %s is in zone %s, and the StorageClass has storage pools in %.300s only: so that pods are placed there, "+
			"use a class with allowedTopologies that has those zones under %s, or one with a pool of zone %s in its parameter %s",
			node.Name, zone, z.Pools.Zones(), corev1.LabelTopologyZone, zone, storagepool.Parameter)
	}
	return zone, nil
}

// ofCopy checks that a zone of a disk is one for its copy, too. No other node helps where the class has no pool there.
func (z Zones) ofCopy(from *cloud.Disk, request backend.Request) (string, error) {
	zones := from.Zones()
	if request.Node != nil {
		zone := request.Node.Labels[corev1.LabelTopologyZone]
		if !slices.Contains(zones, zone) {
			return "", backend.WrongNode.Errorf("disk %s, which is to be copied, is in %s, and so is its copy; node %s isn't there", from.Path(), from.In(), request.Node.Name)
		}
		zones = []string{zone}
	}
	at := slices.IndexFunc(zones, func(zone string) bool { return backend.Allows(request.Topologies, nodeIn(zone)) })
	if at < 0 {
		return "", backend.Invalid.Errorf("disk %s, which is to be copied, is in %s, which isn't within the allowedTopologies of the claim's StorageClass: "+
			"use another class", from.Path(), from.In())
	}
	if !z.Pools.Allow(zones[at]) {
		return "", backend.Invalid.Errorf("disk %s, which is to be copied, is in zone %s, and so is its copy, and the StorageClass has storage pools in %.300s only: "+
			"use a class with a pool of that zone, or without the parameter %s", from.Path(), zones[at], z.Pools.Zones(), storagepool.Parameter)
	}
	return zones[at], nil
}

// nodeIn is a node that has nothing but a zone.
func nodeIn(zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: place.RegionOf(zone).Region,
	}}}
}
