// Package storageclass reads StorageClasses and the class of a claim: whether a class is the
// default, whether it waits for a consumer, and what a CSI driver gets of it.
package storageclass

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
)

// AnnDefaultClass and its older name mark the default class.
const (
	AnnDefaultClass     = "storageclass.kubernetes.io/is-default-class"
	AnnBetaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
)

// IsDefault reports whether claims without a class get this one.
func IsDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[AnnDefaultClass] == "true" || class.Annotations[AnnBetaDefaultClass] == "true"
}

// WaitsForConsumer reports whether a class binds its claims only after a pod that uses them
// has a node.
func WaitsForConsumer(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// Of returns the class of a claim, or "".
func Of(claim *corev1.PersistentVolumeClaim) string {
	return volume.GetPersistentVolumeClaimClass(claim)
}
