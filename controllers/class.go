package controllers

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
)

const annDefaultClass = "storageclass.kubernetes.io/is-default-class"

const annBetaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[annDefaultClass] == "true" || class.Annotations[annBetaDefaultClass] == "true"
}

// waitsForConsumer tells whether a class binds its claims only once a pod that
// uses them has a node.
func waitsForConsumer(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

func classOf(claim *corev1.PersistentVolumeClaim) string {
	return volume.GetPersistentVolumeClaimClass(claim)
}
