// Package storageclass reads what StorageClasses and claims say of each other: the class of
// a claim, whether a class is the default, whether it waits for a consumer.
package storageclass

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
)

// AnnDefaultClass and its older name mark the class of claims that name none.
const (
	AnnDefaultClass     = "storageclass.kubernetes.io/is-default-class"
	AnnBetaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
)

// IsDefault reports whether a class is that of claims which name none.
func IsDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[AnnDefaultClass] == "true" || class.Annotations[AnnBetaDefaultClass] == "true"
}

// WaitsForConsumer tells whether a class binds its claims only once a pod that
// uses them has a node.
func WaitsForConsumer(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// Of is the class that a claim names; empty where it names none.
func Of(claim *corev1.PersistentVolumeClaim) string {
	return volume.GetPersistentVolumeClaimClass(claim)
}
