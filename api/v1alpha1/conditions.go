package v1alpha1

// Conditions of a StorageBackend. All are present on every object from the
// first pass on; ReadyCondition is True when every other one is.
const (
	// ReadyCondition: new volumes can be provisioned and old ones removed.
	ReadyCondition = "Ready"
	// AcceptedCondition: the spec is one that this version of Stowage can serve.
	AcceptedCondition = "Accepted"
	// ReachableCondition: the storage answered the last probe.
	ReachableCondition = "Reachable"
	// StorageClassReadyCondition: the StorageClass asked for in the spec exists
	// and is Stowage's, or none was asked for.
	StorageClassReadyCondition = "StorageClassReady"
)

// ProvisionedCondition of a NodeVolume turns True when the volume was made on
// its node's disk and stays True from then on: a volume that was provisioned and
// is not there any more is lost, and is never made again.
// A NodeVolume also has ReadyCondition.
const ProvisionedCondition = "Provisioned"

// GrantedCondition of a NodeVolume that was made is True where it was given the
// capacity that spec.capacity asks for, and else tells why it wasn't.
const GrantedCondition = "Granted"

// HealthyCondition of a NodeVolume that was made is False while something is wrong
// with it that pods notice, or soon will. Its message tells of all that is wrong, its
// reason of the gravest. When it changes, that is told of on the claim.
const HealthyCondition = "Healthy"

// NodeGoneCondition of a NodeVolume that is to be removed is True while its node
// isn't part of the cluster, since when it was found to be gone. Written by the
// manager.
const NodeGoneCondition = "NodeGone"

// HasRoomCondition of a NodeDisk is True while volumes can be given some of it.
// A NodeDisk also has ReadyCondition: volumes can be made on it, if it has room.
const HasRoomCondition = "HasRoom"

// EmptiedCondition of a NodeRecycling turns True when nothing is left in the
// directory, and stays True from then on.
const EmptiedCondition = "Emptied"

// VolumesReadyCondition of a pod is True when every volume of the pod is
// mounted. Written by the node agent where it follows pods itself.
const VolumesReadyCondition = "stowage.dev/VolumesReady"

// BindableCondition of a claim is False while the claim can't be bound, with
// the reason and what was considered, and True once it is bound.
// Written in scope=cluster only.
const BindableCondition = "stowage.dev/Bindable"

// AttemptCondition of a claim counts the volumes that were begun for it, once the
// first was undone: each has an id of its own, so that nothing which comes late to one
// meets the next. Absent, the first is being made, or was.
const AttemptCondition = "stowage.dev/Attempt"

// Reasons of conditions. Those of one kind of error are shared by all
// conditions that tell of it.
const (
	// ReasonReady: all is well.
	ReasonReady = "Ready"
	// ReasonPending: work goes on, nothing is wrong.
	ReasonPending = "Pending"
	// ReasonNotSupported: this version of Stowage can't do what the spec asks.
	ReasonNotSupported = "NotSupported"
	// ReasonInvalid: the spec is wrong; nothing happens until it is changed.
	ReasonInvalid = "Invalid"
	// ReasonPathOutsideBase: the path isn't below the node agent's base folder.
	ReasonPathOutsideBase = "PathOutsideBase"
	// ReasonPathOutsideRoot: the path isn't below the node agent's --recycle-root.
	ReasonPathOutsideRoot = "PathOutsideRoot"
	// ReasonStorageClassConflict: a class of that name exists and isn't Stowage's.
	ReasonStorageClassConflict = "StorageClassConflict"
	// ReasonNotRequested: the spec doesn't ask for what the condition is about.
	ReasonNotRequested = "NotRequested"
	// ReasonInUse: the backend is being deleted and waits for its last volume.
	ReasonInUse = "InUse"
	// ReasonExhausted: there is no room for the asked capacity.
	ReasonExhausted = "Exhausted"
	// ReasonUnavailable: the storage doesn't answer; it is tried again.
	ReasonUnavailable = "Unavailable"
	// ReasonLost: the volume was on its disk and isn't any more.
	ReasonLost = "Lost"
	// ReasonNodeGone: the node isn't part of the cluster any more.
	ReasonNodeGone = "NodeGone"
	// ReasonDeleting: the object is being removed.
	ReasonDeleting = "Deleting"
)

// Reasons of HealthyCondition, beside ReasonReady and ReasonLost, the gravest first.
const (
	// ReasonImageMissing: the volume's directory is there, and its image isn't.
	ReasonImageMissing = "ImageMissing"
	// ReasonIOError: the disk, or the file system in the image, gives errors.
	ReasonIOError = "IOError"
	// ReasonFileSystemReadOnly: the kernel writes to the file system no more.
	ReasonFileSystemReadOnly = "FileSystemReadOnly"
	// ReasonDiskNearlyFull: the disk has hardly any room, or hardly any inodes left, which
	// the volume needs.
	ReasonDiskNearlyFull = "DiskNearlyFull"
	// ReasonVolumeNearlyFull: hardly any of the volume's capacity, or of the inodes that go
	// with it, is left.
	ReasonVolumeNearlyFull = "VolumeNearlyFull"
)

// Reasons of a NodeDisk's conditions, beside those above.
const (
	// ReasonDiskMissing: the disk isn't there that the volumes were made on.
	ReasonDiskMissing = "DiskMissing"
	// ReasonForeignDisk: the folder is another backend's.
	ReasonForeignDisk = "ForeignDisk"
	// ReasonPathTaken: the folder lies in another backend's, or around it.
	ReasonPathTaken = "PathTaken"
	// ReasonPathMissing: the folder, or the one that it is to lie in, isn't there.
	ReasonPathMissing = "PathMissing"
	// ReasonSymlink: a part of the path is a symlink.
	ReasonSymlink = "Symlink"
	// ReasonNotADirectory: a part of the path is a file.
	ReasonNotADirectory = "NotADirectory"
	// ReasonReadOnly: the file system is mounted read-only.
	ReasonReadOnly = "ReadOnly"
	// ReasonNotWritable: the folder can't be written.
	ReasonNotWritable = "NotWritable"
	// ReasonFull: nothing is left to give to volumes, or hardly any inodes are.
	ReasonFull = "Full"
)
