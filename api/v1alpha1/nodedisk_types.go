package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeDisk is one node's part of a local backend: the folder of the node's volumes,
// its disk, and the room on it. The manager creates and deletes it, and the node's
// agent writes its status. Deleting one by hand touches no data: the manager creates
// it again.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ndisk,categories=stowage
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Backend",type=string,JSONPath=`.spec.backend`
// +kubebuilder:printcolumn:name="Total",type=string,JSONPath=`.status.total`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeDisk struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the folder and its node.
	// +required
	Spec NodeDiskSpec `json:"spec"`
	// status is what the node's agent observed.
	// +optional
	Status NodeDiskStatus `json:"status,omitzero"`
}

// NodeDiskList is a list of NodeDisks.
//
// +kubebuilder:object:root=true
type NodeDiskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the disks.
	Items []NodeDisk `json:"items"`
}

// NodeDiskSpec is a folder and its node.
//
// +kubebuilder:validation:XValidation:rule="self.nodeName == oldSelf.nodeName",message="nodeName is immutable"
// +kubebuilder:validation:XValidation:rule="self.backend == oldSelf.backend",message="backend is immutable"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path is immutable"
type NodeDiskSpec struct {
	// nodeName is the node that the disk belongs to. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	NodeName string `json:"nodeName"`
	// backend is the name of the StorageBackend. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Backend string `json:"backend"`
	// path is the backend's folder on the node. Immutable.
	// +required
	Path AbsolutePath `json:"path"`
	// reservedCapacity is how much of the disk must stay free of volumes, in
	// bytes, as in the backend. Default 0. A change holds at once.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0')) && !string(self).matches('[mun]$')",message="reservedCapacity must be a whole number of bytes, such as 10Gi, and not negative"
	// +optional
	ReservedCapacity *resource.Quantity `json:"reservedCapacity,omitempty"`
	// replaces is the id of a disk that is gone for good: that of
	// status.identity.id, or "unknown" if that is empty. Set it to use the disk
	// that is there now instead. Volumes on the other disk are lost. Default:
	// none. A change holds at once.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Replaces string `json:"replaces,omitempty"`
}

// ReplacesUnknown is the value of spec.replaces for a disk with an unknown id.
const ReplacesUnknown = "unknown"

// NodeDiskStatus is what the node's agent observed.
type NodeDiskStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// identity identifies the accepted disk. Volumes are made on this disk and
	// on no other.
	// +optional
	Identity *DiskIdentity `json:"identity,omitempty"`
	// total is the size of the disk's file system, in bytes.
	// +optional
	Total *resource.Quantity `json:"total,omitempty"`
	// used is how much of it is used, by volumes and other files, in bytes.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
	// given is the capacity of all volumes on the disk, full or empty, of this
	// backend and of others, in bytes.
	// +optional
	Given *resource.Quantity `json:"given,omitempty"`
	// available is what new volumes can have, in bytes: what is free, and neither
	// reserved nor given. One volume can have all of it. It is 0 while hardly any
	// inodes are left.
	// +optional
	Available *resource.Quantity `json:"available,omitempty"`
	// unrecorded has the volumes on the accepted disk without a NodeVolume, for
	// example after a cluster was restored. Nothing removes them. To use one again,
	// create a PersistentVolume with its id as the volumeHandle: then its
	// NodeVolume is created again. While the disk isn't Ready, the list stays as
	// it was. Absent until the first inspection.
	// +optional
	Unrecorded *UnrecordedVolumes `json:"unrecorded,omitempty"`
	// conditions are Ready and HasRoom.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaxUnrecorded is how many volumes without a NodeVolume a NodeDisk lists.
const MaxUnrecorded = 256

// UnrecordedVolumes are volumes on a disk without a NodeVolume.
type UnrecordedVolumes struct {
	// count is how many there are.
	Count int32 `json:"count"`
	// volumes are the first of them by id, up to 256.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=id
	// +optional
	Volumes []UnrecordedVolume `json:"volumes,omitempty"`
}

// UnrecordedVolume is a volume on a disk without a NodeVolume.
type UnrecordedVolume struct {
	// id of the volume: the name of its directory.
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`
	// claimNamespace is the namespace of its claim, from the owner record on the
	// disk. Volumes have no record if they are older than owner records, or were
	// restored without extended attributes. Their id contains the uid of the
	// claim.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ClaimNamespace string `json:"claimNamespace,omitempty"`
	// claimName is that claim's name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// claimUID is that claim's UID.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`
	// layout is Directory or Image, from its owner record.
	// +optional
	Layout LocalLayout `json:"layout,omitempty"`
}

// ClaimRef is the claim in the volume's owner record; empty where there is none.
func (v *UnrecordedVolume) ClaimRef() ClaimReference {
	return ClaimReference{Namespace: v.ClaimNamespace, Name: v.ClaimName, UID: v.ClaimUID}
}

// DiskIdentity identifies a disk.
type DiskIdentity struct {
	// id is the random name in the marker file .stowage-disk, in the backend's
	// folder on the disk.
	ID string `json:"id"`
	// fileSystem is the identity of the file system, where it has one that lasts.
	// +optional
	FileSystem string `json:"fileSystem,omitempty"`
	// device is the device number at the last inspection, for people. It may
	// change when the node starts again.
	// +optional
	Device string `json:"device,omitempty"`
}
