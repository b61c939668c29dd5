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

// cacheOptions returns the options of a cache without the large fields that no reconciler
// reads. All writes are patches, so fields that the cache does not have stay as they are. It
// has the CSIStorageCapacities of the manager's own namespace only: other programs publish
// theirs elsewhere.
func cacheOptions(resync time.Duration, namespace string) cache.Options {
	options := cache.Options{DefaultTransform: withoutBallast, SyncPeriod: &resync}
	if namespace != "" {
		options.ByObject = map[client.Object]cache.ByObject{
			&storagev1.CSIStorageCapacity{}: {Namespaces: map[string]cache.Config{namespace: {}}},
		}
	}
	return options
}

// withoutBallast drops managedFields, the last applied configuration and the images of a node.
// If a claim's request equals its capacity, it keeps one map for both.
func withoutBallast(object any) (any, error) {
	if known, err := meta.Accessor(object); err == nil {
		known.SetManagedFields(nil)
		delete(known.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch known := object.(type) {
	case *corev1.Node:
		known.Status.Images = nil
	case *corev1.PersistentVolumeClaim:
		// Each of these maps is a tenth of a claim. Cached objects are never changed.
		requests := known.Spec.Resources.Requests
		if maps.EqualFunc(requests, known.Status.Capacity, resource.Quantity.Equal) {
			known.Status.Capacity = requests
		}
	}
	return object, nil
}
