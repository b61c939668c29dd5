package status

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// objects are what a report is made of.
type objects struct {
	backends    []stowagev1alpha1.StorageBackend
	disks       []stowagev1alpha1.NodeDisk
	nodes       []corev1.Node
	claims      []corev1.PersistentVolumeClaim
	pvs         []corev1.PersistentVolume
	attachments []storagev1.VolumeAttachment
	pods        []corev1.Pod
	// events are the recent ones of claims and pods that wait, by UID.
	events map[types.UID][]corev1.Event
}

// read reads the objects of a report, page by page.
func read(ctx context.Context, c *cluster.Cluster) (*objects, error) {
	backends, disks := &stowagev1alpha1.StorageBackendList{}, &stowagev1alpha1.NodeDiskList{}
	nodes, claims, pvs := &corev1.NodeList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	attachments, pods := &storagev1.VolumeAttachmentList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{backends, disks, nodes, claims, pvs, attachments, pods} {
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
	}
	o := &objects{
		backends: backends.Items, disks: disks.Items, nodes: nodes.Items, claims: claims.Items,
		pvs: pvs.Items, attachments: attachments.Items, pods: pods.Items,
	}
	return o, readEvents(ctx, c, o)
}

// readEvents reads the events that say why claims and pods wait, if any does. A binder that isn't
// Stowage's, and a kubelet, say it nowhere else.
func readEvents(ctx context.Context, c *cluster.Cluster, o *objects) error {
	waits := map[string]bool{
		"PersistentVolumeClaim": slices.ContainsFunc(o.claims, func(claim corev1.PersistentVolumeClaim) bool { return claim.Status.Phase == corev1.ClaimPending }),
		"Pod":                   slices.ContainsFunc(o.pods, isStarting),
	}
	o.events = map[types.UID][]corev1.Event{}
	for kind, some := range waits {
		list := &corev1.EventList{}
		if !some {
			continue
		}
		if err := c.List(ctx, list, client.MatchingFields{"involvedObject.kind": kind}); err != nil {
			return err
		}
		for _, event := range facts.RecentEvents(list.Items, c.Clock.Now()) {
			o.events[event.InvolvedObject.UID] = append(o.events[event.InvolvedObject.UID], event)
		}
	}
	return nil
}

// isStarting reports whether a pod has a node and its containers have not started.
func isStarting(pod corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending
}
