package resolve

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/inlinenfs"
)

// isInline reports whether a volume is an inline volume of the nfs driver. Stowage's other drivers
// have none: their volumes need a requested size.
func isInline(volume corev1.Volume) bool {
	return volume.CSI != nil && volume.CSI.Driver == stowagev1alpha1.NFSDriver
}

// resolveInline resolves an inline volume, for which the pod names a StorageBackend and nothing else.
// A pod that may not name an NFS server may have one, too. A pod keeps the volume that it has,
// whatever becomes of the backend.
func (r *Resolver) resolveInline(ctx context.Context, resolved *ResolvedVolume) error {
	source := resolved.Volume.CSI
	name, err := inlinenfs.BackendNamedBy(source)
	if err != nil {
		return err
	}
	backend := &stowagev1alpha1.StorageBackend{}
	err = r.get(ctx, client.ObjectKey{Name: name}, backend, "StorageBackend "+name)
	if err != nil && !IsWait(err) {
		return err
	}
	resolved.Refused = cmp.Or(err, checkAllowsInline(backend))
	if resolved.Refused == nil {
		resolved.Backend = backend
	}
	return nil
}

// checkAllowsInline returns why a new pod can't use a backend without a claim.
func checkAllowsInline(backend *stowagev1alpha1.StorageBackend) error {
	if backend.DeletionTimestamp != nil {
		return WaitFor("StorageBackend %s is being deleted: name another one", backend.Name)
	}
	return inlinenfs.CheckAllows(backend)
}
