package order

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// VolumesLike returns the names of the PersistentVolumes that refer to the same storage as the
// given one, including it.
func VolumesLike(ctx context.Context, cache client.Reader, name string) []string {
	pv, names := &corev1.PersistentVolume{}, []string{name}
	if cache.Get(ctx, client.ObjectKey{Name: name}, pv, wake.Unhurried, client.UnsafeDisableDeepCopy) != nil || pv.Spec.CSI == nil {
		return names
	}
	volumes, err := index.VolumesOf(ctx, cache, index.HandleOf(pv)[0], wake.Unhurried)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing volumes", "volume", name)
	}
	for i := range volumes {
		if volumes[i].Name != name {
			names = append(names, volumes[i].Name)
		}
	}
	return names
}
