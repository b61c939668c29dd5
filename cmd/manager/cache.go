package main

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheOptions are those of a cache that leaves out what nobody here reads and what
// is a good part of every object. Whoever writes, writes patches: what the cache
// doesn't know stays as it is. Of what storage has room, it knows what lies in the
// manager's own namespace: others publish theirs elsewhere.
func cacheOptions(resync time.Duration, namespace string) cache.Options {
	options := cache.Options{DefaultTransform: withoutBallast, SyncPeriod: &resync}
	if namespace != "" {
		options.ByObject = map[client.Object]cache.ByObject{
			&storagev1.CSIStorageCapacity{}: {Namespaces: map[string]cache.Config{namespace: {}}},
		}
	}
	return options
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
