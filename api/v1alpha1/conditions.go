package v1alpha1

// Conditions of a StorageBackend. ReadyCondition is True when Accepted, Reachable and StorageClassReady are.
const (
	// ReadyCondition: new volumes can be provisioned and old ones removed.
	ReadyCondition = "Ready"
	// AcceptedCondition: this version of Stowage supports the spec.
	AcceptedCondition = "Accepted"
	// ReachableCondition: the storage answered the last probe.
	ReachableCondition = "Reachable"
	// StorageClassReadyCondition: the StorageClass of the spec exists and is Stowage's, or the spec has none.
	StorageClassReadyCondition = "StorageClassReady"
	// SnapshotsServedCondition: the API server has VolumeSnapshots, and the manager serves them, if the driver can make any.
	SnapshotsServedCondition = "SnapshotsServed"
)

// ProvisionedCondition of a NodeVolume turns True when the volume was made on its node's disk, and stays True.
// A provisioned volume that is missing is lost, and is never made again. A NodeVolume also has ReadyCondition.
const ProvisionedCondition = "Provisioned"

// GrantedCondition of a NodeVolume that was made is True if it has the capacity that spec.capacity requests. Else its
// message has the reason.
const GrantedCondition = "Granted"

// HealthyCondition of a NodeVolume that was made is False while it has a problem that pods notice, or soon will. Its
// message has all problems, its reason is that of the most severe one. Each change is an event on the claim.
const HealthyCondition = "Healthy"

// NodeGoneCondition of a NodeVolume that is to be removed is True while its Node object is missing. Its transition time
// is when that was noticed. The manager writes it.
const NodeGoneCondition = "NodeGone"

// HasRoomCondition of a NodeDisk is True while it has room for volumes.
// A NodeDisk also has ReadyCondition: volumes can be made on it, if it has room.
const HasRoomCondition = "HasRoom"

// EmptiedCondition of a NodeRecycling turns True when nothing is left in the
// directory, and stays True.
const EmptiedCondition = "Emptied"

// VolumesReadyCondition of a pod is True when every volume of the pod is
// mounted. The node agent writes it on nodes without a kubelet.
const VolumesReadyCondition = "stowage.dev/VolumesReady"

// BindableCondition of a claim is False while the claim can't be bound: its message
// counts the volumes that don't fit, with reasons. It is True once the claim is bound.
// Only scope=cluster writes it.
const BindableCondition = "stowage.dev/Bindable"

// AttemptCondition of a claim counts its attempts to provision, once the first was undone.
// Each has a volume id of its own: a late call of one attempt can't affect the next.
// Absent: there was one attempt.
const AttemptCondition = "stowage.dev/Attempt"

// PlacementCondition of a claim records where its CSI driver may make the volume, from before the
// first call until a volume object has the answer: the call is repeated with the same places. It is in
// the status, which users can't write. Absent: the driver knows no places.
const PlacementCondition = "stowage.dev/Placement"

// RestoreCondition of a claim records the handle of the snapshot, or of the volume, that its volume is made
// from. It is there from before the first call until a volume object has the answer: a repeat has the same
// source, whatever has its name by then. It is in the status, which users can't write: they could name
// another tenant's snapshot. Absent: no call to restore or copy was made.
const RestoreCondition = "stowage.dev/Restore"

// Reasons of conditions. All conditions share the reason of one kind of error.
const (
	// ReasonReady: there is no problem.
	ReasonReady = "Ready"
	// ReasonPending: work is in progress, and there is no problem.
	ReasonPending = "Pending"
	// ReasonNotSupported: this version of Stowage doesn't support the spec.
	ReasonNotSupported = "NotSupported"
	// ReasonInvalid: the spec is wrong. Nothing happens until it is changed.
	ReasonInvalid = "Invalid"
	// ReasonPathOutsideBase: the path isn't below the node agent's base folder.
	ReasonPathOutsideBase = "PathOutsideBase"
	// ReasonPathOutsideRoot: the path isn't below the node agent's --recycle-root.
	ReasonPathOutsideRoot = "PathOutsideRoot"
	// ReasonStorageClassConflict: a class of that name exists and isn't Stowage's.
	ReasonStorageClassConflict = "StorageClassConflict"
	// ReasonNotRequested: the spec doesn't request what the condition is about.
	ReasonNotRequested = "NotRequested"
	// ReasonInUse: the backend is being deleted and waits for its last volume. One of kind csi waits for
	// unfinished calls and undelete windows only.
	ReasonInUse = "InUse"
	// ReasonExhausted: there is no room for the requested capacity.
	ReasonExhausted = "Exhausted"
	// ReasonUnavailable: the storage doesn't answer. Stowage tries again.
	ReasonUnavailable = "Unavailable"
	// ReasonCRDsMissing: the API server doesn't have the kinds that the condition is about.
	ReasonCRDsMissing = "CRDsMissing"
	// ReasonLost: the volume was made, and is missing on its disk.
	ReasonLost = "Lost"
	// ReasonNodeGone: the Node object is missing.
	ReasonNodeGone = "NodeGone"
	// ReasonDeleting: the object is being removed.
	ReasonDeleting = "Deleting"
)

// Reasons of HealthyCondition, beside ReasonReady and ReasonLost, the most severe first.
const (
	// ReasonImageMissing: the volume's directory exists, and its image doesn't.
	ReasonImageMissing = "ImageMissing"
	// ReasonIOError: the disk, or the file system in the image, gives errors.
	ReasonIOError = "IOError"
	// ReasonFileSystemReadOnly: the kernel no longer writes to the file system.
	ReasonFileSystemReadOnly = "FileSystemReadOnly"
	// ReasonDiskNearlyFull: hardly any room, or hardly any inodes, are left on the disk, and
	// the volume needs them.
	ReasonDiskNearlyFull = "DiskNearlyFull"
	// ReasonVolumeNearlyFull: hardly any of the volume's capacity, or of its inodes, is left.
	ReasonVolumeNearlyFull = "VolumeNearlyFull"
)

// Reasons of a NodeDisk's conditions, beside those above.
const (
	// ReasonDiskMissing: the disk with the volumes isn't there.
	ReasonDiskMissing = "DiskMissing"
	// ReasonForeignDisk: the folder belongs to another backend.
	ReasonForeignDisk = "ForeignDisk"
	// ReasonPathTaken: the folder overlaps that of another backend.
	ReasonPathTaken = "PathTaken"
	// ReasonPathMissing: the folder, or the one above it, is missing.
	ReasonPathMissing = "PathMissing"
	// ReasonSymlink: a part of the path is a symlink.
	ReasonSymlink = "Symlink"
	// ReasonNotADirectory: a part of the path is a file.
	ReasonNotADirectory = "NotADirectory"
	// ReasonReadOnly: the file system is mounted read-only.
	ReasonReadOnly = "ReadOnly"
	// ReasonNotWritable: the folder can't be written.
	ReasonNotWritable = "NotWritable"
	// ReasonFull: no room is left for volumes, or hardly any inodes are.
	ReasonFull = "Full"
)
