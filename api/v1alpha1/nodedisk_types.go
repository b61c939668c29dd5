package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeDisk is one node's part of a local backend: the folder in which the node's
// volumes lie, the disk that the folder is on, and the room that it has. The
// manager makes and deletes it, and the node's agent says in the status how the
// disk is. Deleting one by hand touches no data: it is made again.
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

	// spec says which folder of which node it is about.
	// +required
	Spec NodeDiskSpec `json:"spec"`
	// status is what the node's agent saw.
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

// NodeDiskSpec says which folder of which node a NodeDisk is about.
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
	// bytes, as the backend says. Default 0. A change holds at once.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0')) && !string(self).matches('[mun]$')",message="reservedCapacity must be a whole number of bytes, such as 10Gi, and not negative"
	// +optional
	ReservedCapacity *resource.Quantity `json:"reservedCapacity,omitempty"`
	// replaces is the id of a disk that is gone for good, as status.identity.id
	// shows it, or "unknown" where that shows none. A person sets it to have the
	// disk that is there now used instead: volumes that lay on the other one are
	// lost. Default: none. A change holds at once.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Replaces string `json:"replaces,omitempty"`
}

// ReplacesUnknown is the value of spec.replaces for a disk whose id nobody knows.
const ReplacesUnknown = "unknown"

// NodeDiskStatus is what the node's agent saw.
type NodeDiskStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// identity tells the disk from all others, from when it was accepted on.
	// Volumes are made on this disk and on no other.
	// +optional
	Identity *DiskIdentity `json:"identity,omitempty"`
	// total is the size of the disk's file system, in bytes.
	// +optional
	Total *resource.Quantity `json:"total,omitempty"`
	// used is what is taken of it, by whomever, in bytes.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
	// given is the capacity of all volumes on the disk, full or empty, of this
	// backend and of others, in bytes.
	// +optional
	Given *resource.Quantity `json:"given,omitempty"`
	// available is what may still be given to volumes, in bytes: what is neither
	// reserved nor given, and free. One volume may have all of it. It is 0 while
	// hardly any inodes are left.
	// +optional
	Available *resource.Quantity `json:"available,omitempty"`
	// unrecorded is what lies on the accepted disk and no NodeVolume has: the
	// volumes of NodeVolumes that are gone, after a cluster was restored for
	// example. Nothing removes them. A volume is given back by a PersistentVolume
	// with its id as the volumeHandle: its NodeVolume is made again. While the disk
	// isn't Ready it is as it was last. Absent until the agent has looked.
	// +optional
	Unrecorded *UnrecordedVolumes `json:"unrecorded,omitempty"`
	// conditions are Ready and HasRoom.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaxUnrecorded is how many volumes a NodeDisk names that no NodeVolume has.
const MaxUnrecorded = 256

// UnrecordedVolumes are volumes on a disk that no NodeVolume has.
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

// UnrecordedVolume is a volume on a disk that no NodeVolume has.
type UnrecordedVolume struct {
	// id is the volume's: the name of its directory.
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`
	// claimNamespace is where the claim was that it was made for, as its owner record
	// on the disk says. Volumes from before there were records, and those that were
	// restored without extended attributes, have none: of these the id tells the
	// claim's uid.
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
	// layout is Directory or Image, as its owner record says.
	// +optional
	Layout LocalLayout `json:"layout,omitempty"`
}

// ClaimRef is the claim in the volume's owner record; empty where there is none.
func (v *UnrecordedVolume) ClaimRef() ClaimReference {
	return ClaimReference{Namespace: v.ClaimNamespace, Name: v.ClaimName, UID: v.ClaimUID}
}

// DiskIdentity tells a disk from all others.
type DiskIdentity struct {
	// id is the random name in the marker file .stowage-disk, in the backend's
	// folder on the disk.
	ID string `json:"id"`
	// fileSystem is the identity of the file system, where it has one that lasts.
	// +optional
	FileSystem string `json:"fileSystem,omitempty"`
	// device is the device's number when it was last looked at, for people: it
	// may change when the node starts again.
	// +optional
	Device string `json:"device,omitempty"`
}
