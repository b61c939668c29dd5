package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeVolume orders one node's agent to make or remove a volume. Its name is the
// volume's id. Stowage creates and deletes it. Deleting one by hand, or the CRD,
// removes no data: the object stays until its finalizer is removed by hand, or
// spec.removeData is set.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=nvol,categories=stowage
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.nodeName`
// +kubebuilder:selectablefield:JSONPath=`.spec.source`
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.capacity) || quantity(string(self.spec.capacity)).compareTo(quantity(string(self.status.capacity))) >= 0",message="spec.capacity can't be less than the volume has, status.capacity"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.spec.removeData) && oldSelf.spec.removeData) || (has(self.spec.removeData) && self.spec.removeData) || !(has(oldSelf.status) && has(oldSelf.status.removing) && oldSelf.status.removing)",message="spec.removeData can't be taken back: the node's agent has begun to remove the data"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.status) && has(oldSelf.status.removing) && oldSelf.status.removing) || (has(self.status) && has(self.status.removing) && self.status.removing)",message="status.removing can't be taken back: the data may be half gone"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Backend",type=string,JSONPath=`.spec.backend`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="Layout",type=string,JSONPath=`.spec.layout`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeVolume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the manager requests from the node's agent.
	// +required
	Spec NodeVolumeSpec `json:"spec"`
	// status is what the node's agent did and observed.
	// +optional
	Status NodeVolumeStatus `json:"status,omitzero"`
}

// NodeVolumeList is a list of NodeVolumes.
//
// +kubebuilder:object:root=true
type NodeVolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the volumes.
	Items []NodeVolume `json:"items"`
}

// NodeVolumeSpec is what the manager requests from the node's agent. Only capacity and
// removeData can change.
//
// +kubebuilder:validation:XValidation:rule="self.nodeName == oldSelf.nodeName",message="nodeName is immutable"
// +kubebuilder:validation:XValidation:rule="self.backend == oldSelf.backend",message="backend is immutable"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path is immutable"
// +kubebuilder:validation:XValidation:rule="self.volumeMode == oldSelf.volumeMode",message="volumeMode is immutable"
// +kubebuilder:validation:XValidation:rule="self.layout == oldSelf.layout",message="layout is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.fsType) == has(oldSelf.fsType) && (!has(self.fsType) || self.fsType == oldSelf.fsType)",message="fsType is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.allocation) == has(oldSelf.allocation) && (!has(self.allocation) || self.allocation == oldSelf.allocation)",message="allocation is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="source is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.sourceNamespace) == has(oldSelf.sourceNamespace) && (!has(self.sourceNamespace) || self.sourceNamespace == oldSelf.sourceNamespace)",message="sourceNamespace is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.snapshotUID) == has(oldSelf.snapshotUID) && (!has(self.snapshotUID) || self.snapshotUID == oldSelf.snapshotUID)",message="snapshotUID is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.snapshotUID) || has(self.source)",message="a snapshot needs a source"
// +kubebuilder:validation:XValidation:rule="self.claimRef == oldSelf.claimRef",message="claimRef is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.reservedCapacity) == has(oldSelf.reservedCapacity) && (!has(self.reservedCapacity) || quantity(string(self.reservedCapacity)).compareTo(quantity(string(oldSelf.reservedCapacity))) == 0)",message="reservedCapacity is immutable"
// +kubebuilder:validation:XValidation:rule="self.volumeMode != 'Block' || self.layout == 'Image'",message="volumeMode Block needs layout Image"
// +kubebuilder:validation:XValidation:rule="(has(self.adopt) && self.adopt) == (has(oldSelf.adopt) && oldSelf.adopt)",message="adopt is immutable"
type NodeVolumeSpec struct {
	// nodeName is the node that the volume lies on. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	NodeName string `json:"nodeName"`
	// backend is the name of the StorageBackend. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Backend string `json:"backend"`
	// path is the backend's folder on the node: the volume can be removed without the StorageBackend. Immutable.
	// +required
	Path AbsolutePath `json:"path"`
	// capacity that is requested, in bytes: for an Image, a multiple of 512. It can grow. A growth that isn't
	// granted yet can be withdrawn: it is never less than status.capacity.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isGreaterThan(quantity('4Ei'))",message="capacity must be at most 4Ei"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0')) && !string(self).matches('[mun]$')",message="capacity must be a whole number of bytes, such as 10Gi, and more than 0"
	// +required
	Capacity resource.Quantity `json:"capacity"`
	// reservedCapacity is how much of the disk must stay free of volumes, in bytes. Default 0. Immutable.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0')) && !string(self).matches('[mun]$')",message="reservedCapacity must be a whole number of bytes, such as 10Gi, and not negative"
	// +optional
	ReservedCapacity *resource.Quantity `json:"reservedCapacity,omitempty"`
	// volumeMode is Filesystem or Block. Default Filesystem. Immutable.
	// +kubebuilder:default=Filesystem
	// +kubebuilder:validation:Enum=Filesystem;Block
	// +optional
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
	// layout is Directory or Image. Default Directory. Immutable.
	// +kubebuilder:default=Directory
	// +optional
	Layout LocalLayout `json:"layout,omitempty"`
	// fsType is the file system in an Image. Default ext4. Immutable.
	// +kubebuilder:validation:Enum=ext4;xfs
	// +optional
	FSType string `json:"fsType,omitempty"`
	// allocation is Full or Sparse. With Full the disk keeps room for all of an Image from the start, with Sparse
	// only for what is written. Default Full. Immutable.
	// +optional
	Allocation LocalAllocation `json:"allocation,omitempty"`
	// source is the name of the NodeVolume that this one is made as a copy of. It must have the same node, backend
	// and namespace of its claim. It isn't removed before the copy is made. Default none: empty. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Source string `json:"source,omitempty"`
	// sourceNamespace is the namespace of the source's claim. Default that of claimRef. Immutable.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	SourceNamespace string `json:"sourceNamespace,omitempty"`
	// snapshotUID is the uid of the VolumeSnapshot that the volume is the content of. Its name is snapshot-<uid>,
	// and its claimRef that of its source. No pod uses it. Default none: it is its claim's. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]{1,64}$')",message="snapshotUID must be the uid of a VolumeSnapshot"
	// +optional
	SnapshotUID types.UID `json:"snapshotUID,omitempty"`
	// claimRef is the claim of the volume: the owner record. Immutable.
	// +required
	ClaimRef ClaimReference `json:"claimRef"`
	// removeData orders that the data is removed when the object is deleted. The manager sets it when it reclaims
	// the volume, just before it deletes the object: no other deletion touches data. Default false. It can be
	// unset until status.removing is set.
	// +optional
	RemoveData bool `json:"removeData,omitempty"`
	// adopt means that the volume exists on the disk, and is never made: a missing one is Lost. The manager sets
	// it when it creates the object again of a volume that the agent found on the disk. Default false. Immutable.
	// +optional
	Adopt bool `json:"adopt,omitempty"`
}

// ClaimReference names one claim, for ever: a later claim of the same name has another
// UID.
type ClaimReference struct {
	// namespace of the claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
	// name of the claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// uid of the claim.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]{1,64}$')",message="uid must be the uid of a claim"
	// +required
	UID types.UID `json:"uid"`
}

// NodeVolumeStatus is what the node's agent did and observed.
type NodeVolumeStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// path of the volume on its node.
	// +optional
	Path string `json:"path,omitempty"`
	// capacity that the volume really has, in bytes: never more than spec.capacity.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// enforced means that the capacity is a limit: an Image has its size, and a Directory
	// may have a project quota. Else the capacity is advisory. Default false.
	// +optional
	Enforced bool `json:"enforced,omitempty"`
	// used is how much of the volume is used, in bytes. It counts the file system in an Image, the disk for a block
	// device, and the files of a Directory. It is written after a change by a twentieth of the capacity, else at
	// most every ten minutes. It is absent where it isn't known.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
	// usedInodes is how many files and directories it has. It is written with used.
	// +optional
	UsedInodes *int64 `json:"usedInodes,omitempty"`
	// usedTime is when used was written last.
	// +optional
	UsedTime *metav1.Time `json:"usedTime,omitempty"`
	// removing means that the agent is about to remove the data, or has begun to. It
	// is written before any data is touched: until then spec.removeData can be unset.
	// Once true it stays true.
	// +optional
	Removing bool `json:"removing,omitempty"`
	// conditions are Provisioned and Ready and, once the volume was made, Granted and
	// Healthy.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
