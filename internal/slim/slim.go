// Package slim makes objects small before the manager's cache keeps them. It drops what no reconciler reads, and keeps
// one copy of what many objects have alike: a cluster has a few sizes, classes and drivers, and many thousand volumes.
//
// Objects of the cache are shared and never changed. Fields of two objects may be the same map, slice or pointer.
package slim

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Object makes an object small, in place, before a cache has it. A second call changes nothing. All writes of the
// program have to be patches: what is dropped stays as it is in the API server. Object never fails, and must not: a
// cache would miss the object. It may be called concurrently for different objects.
func Object(object any) (any, error) {
	switch known := object.(type) {
	case *corev1.Pod:
		slimPod(known)
	case *corev1.Node:
		known.Status.Images = nil
	case *corev1.PersistentVolumeClaim:
		shareClaim(known)
	case *corev1.PersistentVolume:
		shareVolume(known)
	case *storagev1.VolumeAttachment:
		shareAttachment(known)
	}
	if known, err := meta.Accessor(object); err == nil {
		slimMeta(known)
	}
	return object, nil
}

// slimMeta drops managedFields and the last applied configuration.
func slimMeta(object metav1.Object) {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	if _, found := annotations[corev1.LastAppliedConfigAnnotation]; found {
		annotations = maps.Clone(annotations) // others may read it
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	object.SetAnnotations(settings.one(annotations))
	object.SetLabels(settings.one(object.GetLabels()))
	object.SetFinalizers(finalizers.one(object.GetFinalizers()))
	object.SetNamespace(words.one(object.GetNamespace()))
}
