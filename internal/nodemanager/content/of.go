package content

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// IsProjected reports whether a volume projects objects of the API server.
func IsProjected(volume corev1.Volume) bool {
	_, is := projectionOf(volume)
	return is
}

// Of reads the files of a pod's volume. renew is when to read them again even if no object
// changes, to renew a token; zero: never. A volume without files has empty Files, not nil.
// Errors that wrap ErrNotSupported are final. Those that wrap ErrMissing name what to wait for.
func Of(ctx context.Context, reader Reader, pod *corev1.Pod, volume corev1.Volume) (files Files, renew time.Time, err error) {
	projection, is := projectionOf(volume)
	if !is {
		return nil, time.Time{}, fmt.Errorf("volume %s isn't of a projected type: %w", volume.Name, ErrNotSupported)
	}
	collected := &collector{reader: reader, pod: pod, projection: projection, found: map[string]found{}}
	for _, source := range projection.sources {
		if err := collected.add(ctx, source); err != nil {
			return nil, time.Time{}, err
		}
	}
	files, err = collected.files()
	return files, collected.renew, err
}

// add collects the files of one source.
func (c *collector) add(ctx context.Context, source corev1.VolumeProjection) error {
	switch {
	case source.ConfigMap != nil:
		return c.addConfigMap(ctx, source.ConfigMap)
	case source.Secret != nil:
		return c.addSecret(ctx, source.Secret)
	case source.DownwardAPI != nil:
		return c.addDownwardAPI(ctx, source.DownwardAPI.Items)
	case source.ServiceAccountToken != nil:
		return c.addToken(ctx, source.ServiceAccountToken)
	case source.ClusterTrustBundle != nil:
		return fmt.Errorf("a projected volume with a clusterTrustBundle is %w", ErrNotSupported)
	case source.PodCertificate != nil:
		return fmt.Errorf("a projected volume with a podCertificate is %w", ErrNotSupported)
	default:
		return fmt.Errorf("a projected volume with a source of this type is %w", ErrNotSupported)
	}
}

// projectionOf returns the sources of a volume: each type is a projected volume with one source.
func projectionOf(volume corev1.Volume) (projection, bool) {
	switch {
	case volume.ConfigMap != nil:
		of := volume.ConfigMap
		source := &corev1.ConfigMapProjection{LocalObjectReference: of.LocalObjectReference, Items: of.Items, Optional: of.Optional}
		return projection{
			sources: []corev1.VolumeProjection{{ConfigMap: source}},
			mode:    ptr.Deref(of.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode), user: of.DefaultUser,
		}, true
	case volume.Secret != nil:
		of := volume.Secret
		source := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: of.SecretName}, Items: of.Items, Optional: of.Optional}
		return projection{
			sources: []corev1.VolumeProjection{{Secret: source}},
			mode:    ptr.Deref(of.DefaultMode, corev1.SecretVolumeSourceDefaultMode), user: of.DefaultUser,
		}, true
	case volume.DownwardAPI != nil:
		of := volume.DownwardAPI
		return projection{
			sources: []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: of.Items}}},
			mode:    ptr.Deref(of.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode), user: of.DefaultUser,
		}, true
	case volume.Projected != nil:
		of := volume.Projected
		return projection{
			sources: of.Sources,
			mode:    ptr.Deref(of.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode), user: of.DefaultUser,
		}, true
	default:
		return projection{}, false
	}
}
