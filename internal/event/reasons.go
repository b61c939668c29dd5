package event

// Reasons of events about claims, as Kubernetes' own controllers have them where they have one.
// docs/reference/events.md is generated from the comments of all reasons here.
const (
	// FailedBinding: no volume fits, the volume that the claim names doesn't exist or is
	// another claim's, or the claim of a pod's ephemeral volume can't be created.
	FailedBinding = "FailedBinding"
	// VolumeMismatch: a volume is reserved for the claim, or the claim names it, and it
	// doesn't fit the claim.
	VolumeMismatch = "VolumeMismatch"
	// ClaimLost: the claim is bound to a PersistentVolume that doesn't exist any more.
	ClaimLost = "ClaimLost"
	// ClaimMisbound: the claim names a volume that is bound to another claim.
	ClaimMisbound = "ClaimMisbound"
	// ClaimInUse: the claim is being deleted, and pods still use it, or its volume is being copied.
	ClaimInUse = "ClaimInUse"
	// WaitForFirstConsumer: the StorageClass binds once a pod uses the claim, and none does.
	WaitForFirstConsumer = "WaitForFirstConsumer"
	// WaitForPodScheduled: a pod uses the claim, and the scheduler has chosen no node for it.
	WaitForPodScheduled = "WaitForPodScheduled"
	// ExternalProvisioning: another provisioner has to create the volume.
	ExternalProvisioning = "ExternalProvisioning"
	// Provisioning: the backend, or the populator of the claim's data source, is creating
	// the volume.
	Provisioning = "Provisioning"
	// ProvisioningFailed: the volume can't be created. The message has the error of the backend.
	ProvisioningFailed = "ProvisioningFailed"
	// ProvisioningSucceeded: the volume was created for the claim.
	ProvisioningSucceeded = "ProvisioningSucceeded"
	// ProvisioningCleanupFailed: the claim is being deleted, and the storage that was begun
	// for it can't be removed.
	ProvisioningCleanupFailed = "ProvisioningCleanupFailed"
	// Resizing: the backend grows the volume.
	Resizing = "Resizing"
	// ExternalExpanding: the driver of the volume, which isn't Stowage's, has to grow it.
	ExternalExpanding = "ExternalExpanding"
	// FileSystemResizeRequired: the volume has grown, and a node has to grow its file system.
	FileSystemResizeRequired = "FileSystemResizeRequired"
	// FileSystemResizeSuccessful: a node without a kubelet has grown the file system.
	FileSystemResizeSuccessful = "FileSystemResizeSuccessful"
	// VolumeResizeSuccessful: the claim has its new size, without a step on a node.
	VolumeResizeSuccessful = "VolumeResizeSuccessful"
	// VolumeResizeFailed: the backend or the node can't grow the volume.
	VolumeResizeFailed = "VolumeResizeFailed"
	// VolumeModify: the backend gives the volume the attributes of another VolumeAttributesClass.
	VolumeModify = "VolumeModify"
	// VolumeModifySuccessful: the volume has the attributes of the VolumeAttributesClass.
	VolumeModifySuccessful = "VolumeModifySuccessful"
	// VolumeModifyFailed: the volume can't have the attributes, or the backend refused for now.
	VolumeModifyFailed = "VolumeModifyFailed"
	// VolumeModifyCanceled: the claim names no VolumeAttributesClass any more, and nothing more
	// of the volume is changed. After an error it may have some attributes of the class.
	VolumeModifyCanceled = "VolumeModifyCanceled"
	// SnapshotCreationFailed: the storage can't make a snapshot of the volume.
	SnapshotCreationFailed = "SnapshotCreationFailed"
	// SnapshotCheckFailed: the storage doesn't say whether it has the snapshot that a content names.
	SnapshotCheckFailed = "SnapshotContentCheckandUpdateFailed"
	// SnapshotDeleteError: the storage can't delete the snapshot, or can't note that it is kept.
	SnapshotDeleteError = "SnapshotDeleteError"
	// GroupSnapshotCreationFailed: the storage can't make snapshots of the volumes of a group.
	GroupSnapshotCreationFailed = "GroupSnapshotCreationFailed"
	// GroupSnapshotCheckFailed: the storage doesn't say whether it has the group snapshot that a content names.
	GroupSnapshotCheckFailed = "GroupSnapshotContentCheckandUpdateFailed"
	// GroupSnapshotDeleteError: the storage can't delete the group snapshot.
	GroupSnapshotDeleteError = "GroupSnapshotDeleteError"
	// SnapshotDeleted: the snapshot was deleted from the storage.
	SnapshotDeleted = "SnapshotDeleted"
	// SnapshotKept: the content goes, and another one has the same snapshot.
	SnapshotKept = "SnapshotKept"
	// CreatingSnapshot: the content of the VolumeSnapshot is made, and the driver is to make the snapshot.
	CreatingSnapshot = "CreatingSnapshot"
	// SnapshotCreated: the driver made the snapshot, which may not be ready yet.
	SnapshotCreated = "SnapshotCreated"
	// SnapshotReady: claims can be restored from the snapshot.
	SnapshotReady = "SnapshotReady"
	// SnapshotContentCreationFailed: the claim can have no snapshot now.
	SnapshotContentCreationFailed = "SnapshotContentCreationFailed"
	// GetSnapshotClassFailed: the VolumeSnapshot names a class that doesn't exist.
	GetSnapshotClassFailed = "GetSnapshotClassFailed"
	// SetDefaultSnapshotClassFailed: the VolumeSnapshot names no class, and not exactly one is the driver's default.
	SetDefaultSnapshotClassFailed = "SetDefaultSnapshotClassFailed"
	// SnapshotContentMissing: the content of the VolumeSnapshot doesn't exist.
	SnapshotContentMissing = "SnapshotContentMissing"
	// SnapshotContentMismatch: the VolumeSnapshot wants a content of a person, and that isn't one; or the other way round.
	SnapshotContentMismatch = "SnapshotContentMismatch"
	// SnapshotContentMisbound: the content is another VolumeSnapshot's.
	SnapshotContentMisbound = "SnapshotContentMisbound"
	// SnapshotMisbound: the status of the VolumeSnapshot names another content than its own.
	SnapshotMisbound = "SnapshotMisbound"
	// SnapshotBindFailed: the content that the VolumeSnapshot names is being deleted.
	SnapshotBindFailed = "SnapshotBindFailed"
	// CreatingGroupSnapshot: the content of the VolumeGroupSnapshot is made, and the driver is to make the snapshots.
	CreatingGroupSnapshot = "CreatingGroupSnapshot"
	// GroupSnapshotCreated: the driver made the snapshots of the group, which may not be ready yet.
	GroupSnapshotCreated = "GroupSnapshotCreated"
	// GroupSnapshotReady: all snapshots of the group are ready.
	GroupSnapshotReady = "GroupSnapshotReady"
	// GroupSnapshotContentCreationFailed: the claims of the group can have no snapshots now.
	GroupSnapshotContentCreationFailed = "GroupSnapshotContentCreationFailed"
	// GetGroupSnapshotClassFailed: the VolumeGroupSnapshot names a class that doesn't exist.
	GetGroupSnapshotClassFailed = "GetGroupSnapshotClassFailed"
	// SetDefaultGroupSnapshotClassFailed: the VolumeGroupSnapshot names no class, and not exactly one is the driver's default.
	SetDefaultGroupSnapshotClassFailed = "SetDefaultGroupSnapshotClassFailed"
	// GroupSnapshotContentMissing: the content of the VolumeGroupSnapshot doesn't exist.
	GroupSnapshotContentMissing = "GroupSnapshotContentMissing"
	// GroupSnapshotContentMismatch: the VolumeGroupSnapshot wants a content of a person, and that isn't one; or the other way round.
	GroupSnapshotContentMismatch = "GroupSnapshotContentMismatch"
	// GroupSnapshotContentMisbound: the content is another VolumeGroupSnapshot's.
	GroupSnapshotContentMisbound = "GroupSnapshotContentMisbound"
	// GroupSnapshotMisbound: the status of the VolumeGroupSnapshot names another content than its own.
	GroupSnapshotMisbound = "GroupSnapshotMisbound"
	// GroupSnapshotBindFailed: the content of the VolumeGroupSnapshot is being deleted, or a name of its members is taken.
	GroupSnapshotBindFailed = "GroupSnapshotBindFailed"
	// SnapshotDeletePending: the VolumeSnapshot or its group is deleted, and a claim is being restored from it, or the group is there.
	SnapshotDeletePending = "SnapshotDeletePending"
	// VolumeConditionAbnormal: the volume has a problem that pods notice, or soon will: a local
	// volume, or one of a CSI driver that says so.
	VolumeConditionAbnormal = "VolumeConditionAbnormal"
	// VolumeConditionNormal: the problem of the volume is gone.
	VolumeConditionNormal = "VolumeConditionNormal"
)

// Reasons of events about volumes and their storage.
const (
	// VolumeUnusable: the PersistentVolume, which a person made, has an access mode or a volumeMode
	// that no volume of its backend can have, or its CSI driver denies what it says.
	VolumeUnusable = "VolumeUnusable"
	// VolumeDelete: the removal of the storage goes on, or waits.
	VolumeDelete = "VolumeDelete"
	// VolumeDeleted: the backend holds no storage of the volume any more.
	VolumeDeleted = "VolumeDeleted"
	// VolumeFailedDelete: the storage of the volume can't be removed, or nothing in the
	// cluster can remove it.
	VolumeFailedDelete = "VolumeFailedDelete"
	// VolumeRetained: the PersistentVolume goes, and its data stays where the message says.
	VolumeRetained = "VolumeRetained"
	// VolumeFailedRetain: the storage doesn't bear the note yet that its data is to be kept.
	// The PersistentVolume stays until it does.
	VolumeFailedRetain = "VolumeFailedRetain"
	// UndeleteWindowBegan: the claim or the VolumeSnapshot is gone, and the data is kept until the time in the message.
	UndeleteWindowBegan = "UndeleteWindowBegan"
	// NoUndeleteWindow: the snapshot is deleted without a window, because too many of its namespace are in theirs.
	NoUndeleteWindow = "NoUndeleteWindow"
	// UndeleteWindowEnds: the data is deleted within an hour.
	UndeleteWindowEnds = "UndeleteWindowEnds"
	// VolumeRecycle: the removal of the files goes on, or waits.
	VolumeRecycle = "VolumeRecycle"
	// VolumeRecycled: the files are removed, and the volume can be claimed again.
	VolumeRecycled = "VolumeRecycled"
	// VolumeFailedRecycle: the files can't be removed. If only a person can help, the volume
	// is Failed.
	VolumeFailedRecycle = "VolumeFailedRecycle"
	// NodeVolumeAdopted: the NodeVolume of a local volume was gone, and is created again from
	// what the disk has.
	NodeVolumeAdopted = "NodeVolumeAdopted"
	// NodeVolumeNotAdopted: the NodeVolume of a local volume is gone, and what the disk has
	// doesn't fit the PersistentVolume.
	NodeVolumeNotAdopted = "NodeVolumeNotAdopted"
	// DataRemoved: a user deleted the NodeVolume with spec.removeData while a claim is bound
	// to the volume. The node removes the data.
	DataRemoved = "DataRemoved"
	// Forgotten: the node is gone, and local.nodeGone of the backend has the policy Forget.
	Forgotten = "Forgotten"
)

// Reasons of events about StorageBackends.
const (
	// OrphansFound: the backend holds storage of this cluster that no PersistentVolume and no VolumeSnapshotContent refers to.
	OrphansFound = "OrphansFound"
	// OrphanRemoved: an orphan that spec.audit.removeOrphansAfter had removed is gone.
	OrphanRemoved = "OrphanRemoved"
	// OrphanNotRemoved: an orphan that spec.audit.removeOrphansAfter has removed stays, after an error.
	OrphanNotRemoved = "OrphanNotRemoved"
	// VolumesLost: PersistentVolumes refer to storage that the backend doesn't have.
	VolumesLost = "VolumesLost"
	// AuditFailed: the backend couldn't list what it holds.
	AuditFailed = "AuditFailed"
	// StorageClassRemoved: the spec requests another StorageClass, or none.
	StorageClassRemoved = "StorageClassRemoved"
	// StorageClassInUse: a deleted StorageClass waits for a claim for which its CSI driver may
	// have made a volume.
	StorageClassInUse = "StorageClassInUse"
	// CapacityNotPublished: the scheduler doesn't know how much room a CSI driver has for volumes of a
	// class.
	CapacityNotPublished = "CapacityNotPublished"
	// AttachmentCheckFailed: the backend couldn't list what is attached.
	AttachmentCheckFailed = "AttachmentCheckFailed"
	// StrayAttachment: a disk of this cluster is attached to a machine, and no
	// VolumeAttachment requests it.
	StrayAttachment = "StrayAttachment"
)

// Reasons of events about attachments.
const (
	// FailedAttachVolume: the volume can't be attached, or is still attached to another node.
	FailedAttachVolume = "FailedAttachVolume"
	// FailedDetachVolume: the volume can't be detached, or its node still uses it.
	FailedDetachVolume = "FailedDetachVolume"
	// ForcedDetachVolume: the volume is detached from a node that hasn't released it, as the
	// force policy allows.
	ForcedDetachVolume = "ForcedDetachVolume"
	// SlowAttachVolume: the backend has been working on the attach or detach for two minutes.
	SlowAttachVolume = "SlowAttachVolume"
	// VolumeDetachedElsewhere: the disk was detached outside of Stowage, and is attached again.
	VolumeDetachedElsewhere = "VolumeDetachedElsewhere"
)

// Reasons of events about pods, which the node agent records on nodes without a kubelet.
const (
	// SuccessfulMountVolume: all volumes of the pod are mounted, after an event of what was in the way.
	SuccessfulMountVolume = "SuccessfulMountVolume"
	// FailedMount: a volume can't be mounted, has waited for a minute, or can't be refreshed.
	FailedMount = "FailedMount"
	// FailedUnmount: a volume of a pod that ended can't be unmounted.
	FailedUnmount = "FailedUnmount"
	// SizeLimitExceeded: an emptyDir holds more than its sizeLimit.
	SizeLimitExceeded = "SizeLimitExceeded"
	// VolumePermissionChangeInProgress: giving the files of a volume to the pod's fsGroup takes long.
	VolumePermissionChangeInProgress = "VolumePermissionChangeInProgress"
	// AlreadyMountedVolume: another pod uses the volume with another fsGroup.
	AlreadyMountedVolume = "AlreadyMountedVolume"
)
