package explain

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
)

// read is an object, or that it couldn't be read. An empty name means that no link refers to
// such an object.
type read[T any] struct {
	name     string
	presence cluster.Presence
	object   T
}

func (r read[T]) found() bool { return r.presence == cluster.Found }

// place is a node as storage sees it.
type place struct {
	node    read[corev1.Node]
	csiNode read[storagev1.CSINode]
}

// stored is what the chain of one claim or volume object consists of.
type stored struct {
	// volume is the name in the pod's spec.volumes; "" without a pod.
	volume      string
	claim       read[corev1.PersistentVolumeClaim]
	class       read[storagev1.StorageClass]
	backend     read[stowagev1alpha1.StorageBackend]
	pv          read[corev1.PersistentVolume]
	driver      read[storagev1.CSIDriver]
	attachments []storagev1.VolumeAttachment
	nodeVolume  read[stowagev1alpha1.NodeVolume]
	nodeDisk    read[stowagev1alpha1.NodeDisk]
	// place is the node of the pod or, without a pod, the only node of the volume.
	place place
	// users are pods that use the claim and haven't ended.
	users []string
	// events of the claim and the volume object, the newest first.
	events []corev1.Event
}

// podFacts is what the chain of a pod consists of.
type podFacts struct {
	pod     read[corev1.Pod]
	place   place
	volumes []stored
	events  []corev1.Event
}
