package bindable

// Reasons of the condition Bindable. docs/reference/conditions.md is generated from their comments.
const (
	// ReasonBound: the claim has its volume.
	ReasonBound = "Bound"
	// ReasonNoMatchingVolume: no volume fits, and the StorageClass makes none. The message
	// counts the volumes that don't fit, with reasons.
	ReasonNoMatchingVolume = "NoMatchingVolume"
	// ReasonVolumeNotFound: the volume in spec.volumeName doesn't exist.
	ReasonVolumeNotFound = "VolumeNotFound"
	// ReasonVolumeReserved: the volume in spec.volumeName belongs to another claim.
	ReasonVolumeReserved = "VolumeReserved"
	// ReasonVolumeMismatch: the volume in spec.volumeName doesn't fit the claim.
	ReasonVolumeMismatch = "VolumeMismatch"
	// ReasonVolumeLost: the claim was bound, and its PersistentVolume doesn't exist any more.
	ReasonVolumeLost = "VolumeLost"
	// ReasonVolumeMisbound: the volume of the claim is bound to another claim.
	ReasonVolumeMisbound = "VolumeMisbound"
	// ReasonVolumeTerminating: the volume of the claim is being deleted.
	ReasonVolumeTerminating = "VolumeTerminating"
	// ReasonWaitForFirstConsumer: the StorageClass binds once a pod uses the claim.
	ReasonWaitForFirstConsumer = "WaitForFirstConsumer"
	// ReasonWaitForPodScheduled: the scheduler has chosen no node for the claim's pod.
	ReasonWaitForPodScheduled = "WaitForPodScheduled"
	// ReasonWaitForPopulator: a populator of the claim's data source has to create the volume.
	ReasonWaitForPopulator = "WaitForPopulator"
	// ReasonExternalProvisioning: another provisioner has to create the volume.
	ReasonExternalProvisioning = "ExternalProvisioning"
	// ReasonProvisioning: the backend is creating the volume.
	ReasonProvisioning = "Provisioning"
	// ReasonProvisioningFailed: the backend can't create the volume.
	ReasonProvisioningFailed = "ProvisioningFailed"
	// ReasonProvisioningCleanup: the claim is being deleted, and the storage that was begun for
	// it is being removed.
	ReasonProvisioningCleanup = "ProvisioningCleanup"
	// ReasonNodeNotFound: the node that was chosen for the claim's pod doesn't exist.
	ReasonNodeNotFound = "NodeNotFound"
)

// Reasons of the other conditions of claims.
const (
	// ReasonUndone: an attempt to provision was undone, and the next one has another volume id.
	ReasonUndone = "Undone"
	// ReasonPlaced: the CSI driver may make the volume in the places of the message.
	ReasonPlaced = "Placed"
	// ReasonRestoring: the volume is made from the snapshot, or the volume, with the handle in the message.
	ReasonRestoring = "Restoring"
	// ReasonResizing: the backend grows the volume.
	ReasonResizing = "Resizing"
	// ReasonNodeResizePending: the volume has grown, and its file system has not.
	ReasonNodeResizePending = "NodeResizePending"
	// ReasonOutcomeUnknown: the call to grow or to change the volume failed, and its outcome is unknown.
	ReasonOutcomeUnknown = "Unknown"
	// ReasonModifying: the backend gives the volume the attributes of another VolumeAttributesClass.
	ReasonModifying = "Modifying"
	// ReasonModifyRetry: the backend refused to change the volume, and is asked again.
	ReasonModifyRetry = "WaitingForRetry"
	// ReasonModifyClassMissing: the VolumeAttributesClass doesn't exist, or is being deleted.
	ReasonModifyClassMissing = "VolumeAttributesClassNotFound"
	// ReasonNoPodsUsingPVC: no pod refers to the claim.
	ReasonNoPodsUsingPVC = "NoPodsUsingPVC"
	// ReasonPodUsingPVC: a pod refers to the claim.
	ReasonPodUsingPVC = "PodUsingPVC"
)
