package nodemanager

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func isAttached(attached []corev1.AttachedVolume, name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(attached, func(one corev1.AttachedVolume) bool { return one.Name == name })
}
