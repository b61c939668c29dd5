package environment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// from returns the value of a variable of envFrom: that of the last source that has it.
func (s scope) from(ctx context.Context, name string) (value string, found bool, err error) {
	for _, source := range slices.Backward(s.Container.EnvFrom) {
		key, prefixed := strings.CutPrefix(name, source.Prefix)
		if !prefixed || key == "" {
			continue
		}
		value, found, err = s.key(ctx, source, key)
		if found || err != nil {
			return value, found, err
		}
	}
	return "", false, nil
}

// key returns the value of one key of a source of envFrom.
func (s scope) key(ctx context.Context, source corev1.EnvFromSource, key string) (value string, found bool, err error) {
	switch {
	case source.ConfigMapRef != nil:
		object, err := s.Reader.ConfigMap(ctx, s.Pod, source.ConfigMapRef.Name)
		if isAllowed(err, source.ConfigMapRef.Optional) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		value, found = object.Data[key]
		return value, found, nil
	case source.SecretRef != nil:
		object, err := s.Reader.Secret(ctx, s.Pod, source.SecretRef.Name)
		if isAllowed(err, source.SecretRef.Optional) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		data, found := object.Data[key]
		return string(data), found, nil
	default:
		return "", false, nil
	}
}

// isAllowed reports whether a missing object is optional. An object that can't be read yet may
// exist.
func isAllowed(err error, optional *bool) bool {
	return errors.Is(err, content.ErrMissing) && !apierrors.IsForbidden(err) && optional != nil && *optional
}

// read returns the value of a variable with a source.
func (s scope) read(ctx context.Context, from *corev1.EnvVarSource) (value string, found bool, err error) {
	if from.FieldRef != nil {
		if value, known, err := s.field(ctx, from.FieldRef.FieldPath); known || err != nil {
			return value, known, err
		}
	}
	source, err := s.asVolume(from)
	if err != nil {
		return "", false, err
	}
	files, _, err := content.Of(ctx, s.Reader, s.Pod, corev1.Volume{Name: "environment", VolumeSource: source})
	if err != nil {
		return "", false, err
	}
	file, found := files[onlyFile]
	return string(file.Data), found, nil
}

// onlyFile is the file of the volume that projects a variable.
const onlyFile = "value"

// asVolume returns a volume that projects a variable to one file: the sources of variables and of
// volumes are the same.
func (s scope) asVolume(from *corev1.EnvVarSource) (corev1.VolumeSource, error) {
	item := corev1.DownwardAPIVolumeFile{Path: onlyFile}
	switch {
	case from.FieldRef != nil:
		item.FieldRef = from.FieldRef
	case from.ResourceFieldRef != nil:
		item.ResourceFieldRef = from.ResourceFieldRef.DeepCopy()
		if item.ResourceFieldRef.ContainerName == "" {
			item.ResourceFieldRef.ContainerName = s.Container.Name
		}
	case from.ConfigMapKeyRef != nil:
		of := from.ConfigMapKeyRef
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: of.LocalObjectReference, Items: []corev1.KeyToPath{{Key: of.Key, Path: onlyFile}}, Optional: of.Optional,
		}}, nil
	case from.SecretKeyRef != nil:
		of := from.SecretKeyRef
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: of.Name, Items: []corev1.KeyToPath{{Key: of.Key, Path: onlyFile}}, Optional: of.Optional,
		}}, nil
	default:
		return corev1.VolumeSource{}, fmt.Errorf("it is taken from a file or from something newer, which subPathExpr can't use in this version of Stowage: use a fieldRef, a configMapKeyRef or a plain value")
	}
	return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{item}}}, nil
}
