package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// VolumesOf returns the PersistentVolumes with a handle, in the format of HandleOf, from the
// cache. They must not be changed.
func VolumesOf(ctx context.Context, cache client.Reader, handle string, options ...client.ListOption) ([]corev1.PersistentVolume, error) {
	volumes := &corev1.PersistentVolumeList{}
	options = append(options, client.MatchingFields{VolumesByHandle: handle}, client.UnsafeDisableDeepCopy)
	if err := cache.List(ctx, volumes, options...); err != nil {
		return nil, fmt.Errorf("listing the volumes of handle %s: %w", handle, err)
	}
	return volumes.Items, nil
}
