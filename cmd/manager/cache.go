package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// cacheOptions are those of a cache that leaves out what nobody here reads and what
// is a good part of every object. Whoever writes, writes patches: what the cache
// doesn't know stays as it is.
func cacheOptions() cache.Options { return cache.Options{DefaultTransform: withoutBallast} }

// withoutBallast drops who manages which field, what kubectl applied last, and the
// images on a node.
func withoutBallast(object any) (any, error) {
	if known, err := meta.Accessor(object); err == nil {
		known.SetManagedFields(nil)
		delete(known.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	if node, isNode := object.(*corev1.Node); isNode {
		node.Status.Images = nil
	}
	return object, nil
}
