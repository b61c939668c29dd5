package main

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// cacheOptions are those of a cache that leaves out what nobody here reads and what
// is a good part of every object. Whoever writes, writes patches: what the cache
// doesn't know stays as it is.
func cacheOptions(resync time.Duration) cache.Options {
	return cache.Options{DefaultTransform: withoutBallast, SyncPeriod: &resync}
}

// withoutBallast drops who manages which field, what kubectl applied last, and the
// images on a node; and it keeps once what a claim asks for and got.
func withoutBallast(object any) (any, error) {
	if known, err := meta.Accessor(object); err == nil {
		known.SetManagedFields(nil)
		delete(known.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch known := object.(type) {
	case *corev1.Node:
		known.Status.Images = nil
	case *corev1.PersistentVolumeClaim:
		// Each of these maps is a tenth of a claim. Nobody changes what is cached.
		asked := known.Spec.Resources.Requests
		if maps.EqualFunc(asked, known.Status.Capacity, resource.Quantity.Equal) {
			known.Status.Capacity = asked
		}
	}
	return object, nil
}
