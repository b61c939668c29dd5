package gce

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// zoneFor chooses the zone of a new disk: that of the disk that it copies, its pod's, or else one that the
// class allows. It computes the last one from the id, so disks spread, and a repeat chooses the same zone
// even if other zones were added or removed.
func (b *gceBackend) zoneFor(request backend.Request, from origin) (string, error) {
	if from.disk != nil {
		return b.zoneOfCopy(from.disk, request)
	}
	if request.Node != nil {
		return b.zoneOf(request.Node)
	}
	allowed := slices.DeleteFunc(slices.Clone(b.spec.Zones), func(zone string) bool {
		return !backend.Allows(request.Topologies, nodeIn(zone))
	})
	if len(allowed) == 0 {
		return "", backend.Invalid.Errorf("none of the zones of backend %s (%s) is within the allowedTopologies of the claim's StorageClass: "+
			"add one to gce.zones, or use another class; zones go by the label %s", b.name, strings.Join(b.spec.Zones, ", "), corev1.LabelTopologyZone)
	}
	return slices.MaxFunc(allowed, func(one, other string) int {
		return cmp.Compare(cloud.Digest(request.ID, one), cloud.Digest(request.ID, other))
	}), nil
}

func (b *gceBackend) zoneOf(node *corev1.Node) (string, error) {
	zone := node.Labels[corev1.LabelTopologyZone]
	switch {
	case zone == "":
		return "", backend.WrongNode.Errorf("node %s has no label %s, so it is unknown which disks it can have: "+
			"label it with the zone of its instance", node.Name, corev1.LabelTopologyZone)
	case !slices.Contains(b.spec.Zones, zone):
		return "", backend.WrongNode.Errorf("node %s is in zone %s, and backend %s makes disks in %s only: so that pods are placed there, "+
			"let the StorageClass have allowedTopologies with %s in them, or add the zone to gce.zones",
			node.Name, zone, b.name, strings.Join(b.spec.Zones, ", "), corev1.LabelTopologyZone)
	}
	return zone, nil
}

// nodeIn is a node that has nothing but a zone.
func nodeIn(zone string) *corev1.Node {
	region := zone
	if at := strings.LastIndexByte(zone, '-'); at >= 0 {
		region = zone[:at]
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: region,
	}}}
}
