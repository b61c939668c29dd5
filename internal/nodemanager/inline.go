package nodemanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// isInline says whether a pod names a volume of the nfs driver itself, without a claim.
// Stowage's other drivers have none: there, a volume takes room that is to be asked for.
func isInline(volume corev1.Volume) bool {
	return volume.CSI != nil && volume.CSI.Driver == stowagev1alpha1.NFSDriver
}

// resolveInline completes what is known of a volume for which the pod names a
// StorageBackend, and nothing else: any pod may have such volumes, also one that may not
// name an NFS server. One that it has already is its own, whatever becomes of the backend.
func (r *resolver) resolveInline(ctx context.Context, resolved *ResolvedVolume) error {
	source := resolved.Volume.CSI
	name, err := backendNamedBy(source)
	if err != nil {
		return err
	}
	if source.ReadOnly != nil && *source.ReadOnly {
		resolved.Access = mount.ReadOnly
	}
	backend := &stowagev1alpha1.StorageBackend{}
	err = r.get(ctx, client.ObjectKey{Name: name}, backend, "StorageBackend "+name)
	if err != nil && !isWait(err) {
		return err
	}
	resolved.Refused = cmp.Or(err, checkAllowsInline(backend))
	if resolved.Refused == nil {
		resolved.Backend = backend
	}
	return nil
}

// backendNamedBy is the backend that a pod names. What else it says of a volume would
// have no effect, and isn't ignored.
func backendNamedBy(source *corev1.CSIVolumeSource) (string, error) {
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

// checkAllowsInline says why a pod can't begin to use a backend without a claim.
func checkAllowsInline(backend *stowagev1alpha1.StorageBackend) error {
	switch {
	case backend.DeletionTimestamp != nil:
		return waitFor("StorageBackend %s is being deleted: name another one", backend.Name)
	case backend.Spec.NFS == nil:
		return errors.New("StorageBackend " + backend.Name + " has no NFS share: name one of kind nfs")
	case !backend.Spec.NFS.AllowInline:
		return errors.New("StorageBackend " + backend.Name + " doesn't let pods have volumes without a claim: " +
			"use a claim of its StorageClass, or have its administrator set nfs.allowInline")
	default:
		return nil
	}
}
