package attach

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of nodes.
const (
	// ManagedAnnotation is on nodes whose volumes a controller attaches. On others the
	// kubelet does it itself. Kubernetes asks only whether it is there; what a kubelet
	// writes is "true", and who writes "false" means what that says.
	ManagedAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"
	// KeepTerminatedAnnotation is on nodes that keep the volumes of pods that ended
	// mounted, until the pods' objects are gone.
	KeepTerminatedAnnotation = "volumes.kubernetes.io/keep-terminated-pod-volumes"
)

// settles is how long a node that registered anew may take to tell what it uses: its
// Node object is younger than what is attached to it, and starts with an empty
// volumesInUse, whatever is mounted.
const settles = time.Minute

// IsManaged tells whether the volumes of a node are a controller's to attach.
func IsManaged(node *corev1.Node) bool {
	value, set := node.Annotations[ManagedAnnotation]
	return set && value != "false"
}

func keepsTerminated(node *corev1.Node) bool {
	return node != nil && node.Annotations[KeepTerminatedAnnotation] == "true"
}

// Lets tells whether a node neither uses a volume nor was told that it can: then
// nothing on it will touch the volume.
func Lets(node *corev1.Node, name corev1.UniqueVolumeName) bool {
	return !slices.Contains(node.Status.VolumesInUse, name) && !Told(node, name)
}

// Told tells whether a node was told that it can use a volume. Once it isn't told any
// more, which is decided while it doesn't use the volume, no use begins, though the
// volume may be in volumesInUse again: that is where a kubelet puts what its pods wait
// for. See MayOnlyAwait.
func Told(node *corev1.Node, name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(node.Status.VolumesAttached, func(attached corev1.AttachedVolume) bool {
		return attached.Name == name
	})
}

// Reported is what volumesAttached is to be once the steps are done that change it,
// and whether that differs. The order stays, and so does whatever nobody understands.
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
