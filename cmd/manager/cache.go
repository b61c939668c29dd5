package main

import (
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/slim"
)

// cacheOptions returns the options of a cache of slim objects. All writes are patches, so fields
// that the cache does not have stay as they are. It has the CSIStorageCapacities of the manager's
// own namespace only: other programs publish theirs elsewhere.
func cacheOptions(resync time.Duration, namespace string) cache.Options {
	options := cache.Options{DefaultTransform: slim.Object, SyncPeriod: &resync}
	if namespace != "" {
		options.ByObject = map[client.Object]cache.ByObject{
			&storagev1.CSIStorageCapacity{}: {Namespaces: map[string]cache.Config{namespace: {}}},
		}
	}
	return options
}
