package status

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
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
	return &objects{
		backends: backends.Items, disks: disks.Items, nodes: nodes.Items, claims: claims.Items,
		pvs: pvs.Items, attachments: attachments.Items, pods: pods.Items,
	}, nil
}
