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

// settles is how long a node that registered again may take to report what it uses. Its Node
// object is younger than its attachments, and starts with an empty volumesInUse, whatever is
// mounted.
const settles = time.Minute

// IsManaged reports whether a controller attaches the volumes of a node.
func IsManaged(node *corev1.Node) bool {
	value, set := node.Annotations[ManagedAnnotation]
	return set && value != "false"
}

func keepsTerminated(node *corev1.Node) bool {
	return node != nil && node.Annotations[KeepTerminatedAnnotation] == "true"
}

// Lets reports whether a volume is in neither volumesInUse nor volumesAttached of a node: then
// nothing on the node will touch it.
func Lets(node *corev1.Node, name corev1.UniqueVolumeName) bool {
	return !slices.Contains(node.Status.VolumesInUse, name) && !Told(node, name)
}

// Told reports whether a volume is in volumesAttached of a node. It is removed from there only
// while it is not in volumesInUse, and then no use begins. It may reappear in volumesInUse,
// because a kubelet lists what its pods wait for. See MayOnlyAwait.
func Told(node *corev1.Node, name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(node.Status.VolumesAttached, func(attached corev1.AttachedVolume) bool {
		return attached.Name == name
	})
}

// Reported returns volumesAttached after the steps that change it, and whether that differs.
// The order stays, and so do entries that nothing here understands.
func Reported(node *corev1.Node, steps []Step) (attached []corev1.AttachedVolume, changed bool) {
	if node == nil {
		return nil, false
	}
	withdrawn := map[corev1.UniqueVolumeName]bool{}
	attached = []corev1.AttachedVolume{}
	for _, step := range steps {
		withdrawn[step.Volume.Name] = withdrawn[step.Volume.Name] || step.Action == Withdraw
	}
	for _, entry := range node.Status.VolumesAttached {
		if !withdrawn[entry.Name] {
			attached = append(attached, entry)
		}
	}
	changed = len(attached) < len(node.Status.VolumesAttached)
	for _, step := range steps {
		if step.Action == Report {
			attached, changed = append(attached, corev1.AttachedVolume{Name: step.Volume.Name}), true
		}
	}
	return attached, changed
}
