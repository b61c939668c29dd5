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

// ProvisionedCondition of a LocalVolume turns True when the volume was made on
// its node's disk and stays True from then on: a volume that was provisioned and
// is not there any more is lost, and is never made again.
// A LocalVolume also has ReadyCondition.
const ProvisionedCondition = "Provisioned"

// GrantedCondition of a LocalVolume that was made is True where it was given the
// capacity that spec.capacity asks for, and else tells why it wasn't.
const GrantedCondition = "Granted"

// VolumesReadyCondition of a pod is True when every volume of the pod is
// mounted. Written by the node agent where it follows pods itself.
const VolumesReadyCondition = "stowage.dev/VolumesReady"

// BindableCondition of a claim is False while the claim can't be bound, with
// the reason and what was considered, and True once it is bound.
// Written in scope=cluster only.
const BindableCondition = "stowage.dev/Bindable"

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
	// ReasonDeleting: the object is being removed.
	ReasonDeleting = "Deleting"
)
