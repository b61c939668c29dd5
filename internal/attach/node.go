package attach

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of nodes.
const (
	// ManagedAnnotation is on nodes if a controller attaches their volumes. On others the
	// kubelet attaches them itself. Kubernetes checks only that it exists. A kubelet writes
	// "true". Here the value "false", which a person may write, means false.
	ManagedAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"
	// KeepTerminatedAnnotation is on nodes that keep the volumes of pods that ended mounted,
	// until the pods' objects are gone.
	KeepTerminatedAnnotation = "volumes.kubernetes.io/keep-terminated-pod-volumes"
)

// settleTime is how long a node that registered again may take to report what it uses. Its Node
// object is younger than its attachments, and starts with an empty volumesInUse, whatever is
// mounted.
const settleTime = time.Minute

// IsManaged reports whether a controller attaches the volumes of a node.
func IsManaged(node *corev1.Node) bool {
	value, set := node.Annotations[ManagedAnnotation]
	return set && value != "false"
}

func keepsTerminated(node *corev1.Node) bool {
	return node != nil && node.Annotations[KeepTerminatedAnnotation] == "true"
}

// IsUnused reports whether a volume is in neither volumesInUse nor volumesAttached of a node: then
// nothing on the node will touch it.
func IsUnused(node *corev1.Node, name corev1.UniqueVolumeName) bool {
	return !slices.Contains(node.Status.VolumesInUse, name) && !IsMarkedAttached(node, name)
}

// IsMarkedAttached reports whether a volume is in volumesAttached of a node. It is removed from there only
// while it is not in volumesInUse, and then no use begins. It may reappear in volumesInUse,
// because a kubelet lists what its pods wait for. See MayBePendingMount.
func IsMarkedAttached(node *corev1.Node, name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(node.Status.VolumesAttached, func(attached corev1.AttachedVolume) bool {
		return attached.Name == name
	})
}
