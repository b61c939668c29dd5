package effect

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// subject is what a line is about. Of two objects with the same key, the first decides.
type subject struct{ claim, volume, backend, node, pod string }

// About returns the keys and values of a line about some objects. It skips nil, and kinds that
// have no key.
func About(objects ...runtime.Object) []any {
	about := subject{}
	for _, object := range objects {
		about.add(object)
	}
	var values []any
	for _, each := range [][2]string{
		{Claim, about.claim}, {Volume, about.volume}, {Backend, about.backend}, {Node, about.node}, {Pod, about.pod},
	} {
		if each[1] != "" {
			values = append(values, each[0], each[1])
		}
	}
	return values
}

// AboutVolume returns the keys and values of a line about a pod's volume. pv is nil if the volume
// has none; then the line has the name in the pod.
func AboutVolume(pod *corev1.Pod, pv *corev1.PersistentVolume, name string) []any {
	if pv == nil {
		return append([]any{Volume, name}, About(pod)...)
	}
	return About(pv, pod)
}

func (s *subject) add(object runtime.Object) {
	switch known := object.(type) {
	case *corev1.PersistentVolumeClaim:
		s.merge(subject{claim: named(known.Namespace, known.Name), volume: known.Spec.VolumeName})
	case *corev1.PersistentVolume:
		s.merge(ofVolume(known))
	case *storagev1.VolumeAttachment:
		s.merge(subject{node: known.Spec.NodeName, volume: ptr.Deref(known.Spec.Source.PersistentVolumeName, "")})
	case *corev1.Node:
		s.merge(subject{node: known.Name})
	case *corev1.Pod:
		s.merge(subject{pod: named(known.Namespace, known.Name), node: known.Spec.NodeName})
	case *corev1.ObjectReference:
		s.merge(ofReference(known))
	case *stowagev1alpha1.StorageBackend:
		s.merge(subject{backend: known.Name})
	case *stowagev1alpha1.NodeVolume:
		of := known.Spec.ClaimRef
		s.merge(subject{claim: named(of.Namespace, of.Name), volume: known.Name, backend: known.Spec.Backend, node: known.Spec.NodeName})
	case *stowagev1alpha1.NodeDisk:
		s.merge(subject{backend: known.Spec.Backend, node: known.Spec.NodeName})
	case *stowagev1alpha1.NodeRecycling:
		s.merge(subject{volume: known.Name, node: known.Spec.NodeName})
	}
}

// ofVolume accepts nil: a volume may be gone when its attachment is detached.
func ofVolume(pv *corev1.PersistentVolume) subject {
	if pv == nil {
		return subject{}
	}
	about := subject{volume: pv.Name}
	if pv.Spec.ClaimRef != nil {
		about.claim = named(pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	}
	if pv.Spec.CSI != nil {
		about.backend = cmp.Or(pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute], pv.Labels[stowagev1alpha1.BackendLabel])
	}
	return about
}

func ofReference(to *corev1.ObjectReference) subject {
	switch to.Kind {
	case "PersistentVolumeClaim":
		return subject{claim: named(to.Namespace, to.Name)}
	case "PersistentVolume":
		return subject{volume: to.Name}
	case "Pod":
		return subject{pod: named(to.Namespace, to.Name)}
	default:
		return subject{}
	}
}

func (s *subject) merge(more subject) {
	s.claim, s.volume, s.backend = cmp.Or(s.claim, more.claim), cmp.Or(s.volume, more.volume), cmp.Or(s.backend, more.backend)
	s.node, s.pod = cmp.Or(s.node, more.node), cmp.Or(s.pod, more.pod)
}

func named(namespace, name string) string { return namespace + "/" + name }
