package inlinenfs

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// BackendNamedBy returns the backend that a pod names. Any other attribute would have no effect, and
// is an error.
func BackendNamedBy(source *corev1.CSIVolumeSource) (string, error) {
	const known = stowagev1alpha1.BackendAttribute
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(source.VolumeAttributes)), func(key string) bool { return key == known })
	switch {
	case len(others) > 0:
		return "", fmt.Errorf("attribute %q in a pod's own volume of driver %s is %w: name a StorageBackend in volumeAttributes.%s, which says the rest",
			others[0], source.Driver, volumes.ErrNotSupported, known)
	case source.NodePublishSecretRef != nil || source.FSType != nil && *source.FSType != "":
		return "", fmt.Errorf("nodePublishSecretRef or fsType in a pod's own volume of driver %s is %w: leave it out",
			source.Driver, volumes.ErrNotSupported)
	case source.VolumeAttributes[known] == "":
		return "", fmt.Errorf("a pod's own volume of driver %s without a StorageBackend is %w: name one in volumeAttributes.%s",
			source.Driver, volumes.ErrNotSupported, known)
	default:
		return source.VolumeAttributes[known], nil
	}
}

// CheckAllows returns why a new pod can't use a backend without a claim.
func CheckAllows(backend *stowagev1alpha1.StorageBackend) error {
	switch {
	case backend.DeletionTimestamp != nil:
		return errors.New("StorageBackend " + backend.Name + " is being deleted: name another one")
	case backend.Spec.NFS == nil:
		return errors.New("StorageBackend " + backend.Name + " has no NFS share: name one of kind nfs")
	case !backend.Spec.NFS.AllowInline:
		return errors.New("StorageBackend " + backend.Name + " doesn't let pods have volumes without a claim: " +
			"use a claim of its StorageClass, or have its administrator set nfs.allowInline")
	default:
		return nil
	}
}
