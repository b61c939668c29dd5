package slim

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func shareClaim(claim *corev1.PersistentVolumeClaim) {
	spec, status := &claim.Spec, &claim.Status
	spec.AccessModes, status.AccessModes = accessModes.one(spec.AccessModes), accessModes.one(status.AccessModes)
	spec.Resources.Requests, status.Capacity = resources.one(spec.Resources.Requests), resources.one(status.Capacity)
	spec.StorageClassName, spec.VolumeMode = names.one(spec.StorageClassName), volumeModes.one(spec.VolumeMode)
	spec.VolumeAttributesClassName = names.one(spec.VolumeAttributesClassName)
	status.CurrentVolumeAttributesClassName = names.one(status.CurrentVolumeAttributesClassName)
	status.Phase = word(status.Phase)
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		condition.Type, condition.Status, condition.Reason = word(condition.Type), word(condition.Status), words.one(condition.Reason)
		condition.Message = messages.one(condition.Message)
	}
}

func shareVolume(pv *corev1.PersistentVolume) {
	spec := &pv.Spec
	spec.AccessModes, spec.Capacity = accessModes.one(spec.AccessModes), resources.one(spec.Capacity)
	spec.StorageClassName, spec.VolumeMode = words.one(spec.StorageClassName), volumeModes.one(spec.VolumeMode)
	spec.VolumeAttributesClassName = names.one(spec.VolumeAttributesClassName)
	spec.PersistentVolumeReclaimPolicy = word(spec.PersistentVolumeReclaimPolicy)
	spec.MountOptions, spec.NodeAffinity = options.one(spec.MountOptions), affinities.one(spec.NodeAffinity)
	pv.Status.Phase = word(pv.Status.Phase)
	if csi := spec.CSI; csi != nil {
		csi.Driver, csi.FSType = words.one(csi.Driver), words.one(csi.FSType)
		csi.VolumeAttributes = settings.one(csi.VolumeAttributes)
	}
	if claim := spec.ClaimRef; claim != nil {
		claim.Kind, claim.APIVersion, claim.Namespace = words.one(claim.Kind), words.one(claim.APIVersion), words.one(claim.Namespace)
	}
}

func shareAttachment(attachment *storagev1.VolumeAttachment) {
	attachment.Spec.Attacher, attachment.Spec.NodeName = words.one(attachment.Spec.Attacher), words.one(attachment.Spec.NodeName)
	attachment.Status.AttachmentMetadata = settings.one(attachment.Status.AttachmentMetadata)
}
