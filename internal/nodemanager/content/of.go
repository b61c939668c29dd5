package content

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Shows says whether a volume is made of objects of the API server.
func Shows(volume corev1.Volume) bool {
	_, shows := recipeOf(volume)
	return shows
}

// Of finds out what a volume of a pod shows, and when to ask again although no object
// changed, because a token in it should be renewed by then; zero: never. A volume that
// shows nothing has Files that are empty, not nil. Errors that wrap ErrNotSupported are
// final, and those that wrap ErrMissing say what is waited for.
func Of(ctx context.Context, reader Reader, pod *corev1.Pod, volume corev1.Volume) (files Files, renew time.Time, err error) {
	recipe, shows := recipeOf(volume)
	if !shows {
		return nil, time.Time{}, fmt.Errorf("volume %s isn't made of objects of the API server: %w", volume.Name, ErrNotSupported)
	}
	gathering := &gathering{reader: reader, pod: pod, recipe: recipe, found: map[string]found{}}
	for _, source := range recipe.sources {
		if err := gathering.add(ctx, source); err != nil {
			return nil, time.Time{}, err
		}
	}
	files, err = gathering.files()
	return files, gathering.renew, err
}

// recipe is what a volume is made of.
type recipe struct {
	sources []corev1.VolumeProjection
	// mode and user are those of files that don't ask for others.
	mode int32
	user *int64
}

// recipeOf is what a volume is made of: each type is a projected volume with one source.
func recipeOf(volume corev1.Volume) (recipe, bool) {
	switch {
	case volume.ConfigMap != nil:
		of := volume.ConfigMap
		source := &corev1.ConfigMapProjection{LocalObjectReference: of.LocalObjectReference, Items: of.Items, Optional: of.Optional}
		return recipe{
			sources: []corev1.VolumeProjection{{ConfigMap: source}},
			mode:    orDefault(of.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode), user: of.DefaultUser,
		}, true
	case volume.Secret != nil:
		of := volume.Secret
		source := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: of.SecretName}, Items: of.Items, Optional: of.Optional}
		return recipe{
			sources: []corev1.VolumeProjection{{Secret: source}},
			mode:    orDefault(of.DefaultMode, corev1.SecretVolumeSourceDefaultMode), user: of.DefaultUser,
		}, true
	case volume.DownwardAPI != nil:
		of := volume.DownwardAPI
		return recipe{
			sources: []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: of.Items}}},
			mode:    orDefault(of.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode), user: of.DefaultUser,
		}, true
	case volume.Projected != nil:
		of := volume.Projected
		return recipe{
			sources: of.Sources,
			mode:    orDefault(of.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode), user: of.DefaultUser,
		}, true
	default:
		return recipe{}, false
	}
}

func orDefault[T any](value *T, otherwise T) T {
	if value != nil {
		return *value
	}
	return otherwise
}
