package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalBackend makes volumes on the nodes' own disks, through the node agents.
//
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path is immutable, the volumes below it would be orphaned: create another StorageBackend"
// +kubebuilder:validation:XValidation:rule="self.layout != 'Directory' || self.fsType == 'ext4'",message="fsType is the file system of an Image: set layout to Image, or remove fsType"
type LocalBackend struct {
	// path is the absolute path of the folder that holds the volumes, on every
	// node of the backend. It is below the node agent's base folder (by default
	// /var/lib/stowage). Immutable.
	// +required
	Path AbsolutePath `json:"path"`
	// nodeSelector selects the nodes of the backend by their labels.
	// Default: every node. A change holds for volumes made after it.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// layout is Directory, a plain folder with an advisory capacity, or Image, a
	// file of exactly the requested size, with an enforced capacity. Default
	// Directory. A change holds for volumes made after it.
	// +kubebuilder:default=Directory
	// +optional
	Layout LocalLayout `json:"layout,omitempty"`
	// fsType is the file system in an Image: ext4 or xfs. Default ext4. A
	// change holds for volumes made after it.
	// +kubebuilder:default=ext4
	// +kubebuilder:validation:Enum=ext4;xfs
	// +optional
	FSType string `json:"fsType,omitempty"`
	// allocation is Full or Sparse. With Full the disk keeps room for all of an
	// Image from the start, with Sparse only for what is written. If other files
	// fill the disk, a write into a sparse image is lost with an I/O error.
	// Default Full. A change holds for volumes made after it.
	// +kubebuilder:default=Full
	// +optional
	Allocation LocalAllocation `json:"allocation,omitempty"`
	// reservedCapacity is how much of each disk stays free of volumes, in
	// bytes. Default 0. A change holds for volumes made after it.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0')) && !string(self).matches('[mun]$')",message="reservedCapacity must be a whole number of bytes, such as 10Gi, and not negative"
	// +optional
	ReservedCapacity *resource.Quantity `json:"reservedCapacity,omitempty"`
	// nodeGone decides about volumes that are to be removed, and that lie on a node
	// without a Node object.
	// +kubebuilder:default={}
	// +optional
	NodeGone NodeGone `json:"nodeGone,omitzero"`
}

// NodeGone decides about volumes that are to be removed, and that lie on a node without
// a Node object. While the object exists, Ready or not, the manager waits for the node.
//
// +kubebuilder:validation:XValidation:rule="has(self.after) == (has(self.policy) && self.policy == 'Forget')",message="after goes with policy Forget, and with no other"
type NodeGone struct {
	// policy is Wait or Forget. Wait waits until a node of that name is back with
	// the disk. Forget removes the objects of the volume, and its data stays on
	// the disk. Default Wait. A change holds at once.
	// +kubebuilder:default=Wait
	// +kubebuilder:validation:Enum=Wait;Forget
	// +optional
	Policy NodeGonePolicy `json:"policy,omitempty"`
	// after is how long the node must have been gone before a volume is forgotten,
	// as a duration ("1h", "30m") of at least 1m. Required with policy Forget.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(h|m|s))+$') && duration(self) >= duration('1m')",message="after must be a duration such as 1h or 30m, and at least 1m"
	// +optional
	After *metav1.Duration `json:"after,omitempty"`
}

// NodeGonePolicy decides about volumes on a node that is gone.
type NodeGonePolicy string

// Policies for volumes on a node that is gone.
const (
	NodeGoneWait   NodeGonePolicy = "Wait"
	NodeGoneForget NodeGonePolicy = "Forget"
)

// LocalLayout is what a local volume is on its disk.
//
// +kubebuilder:validation:Enum=Directory;Image
type LocalLayout string

// Layouts of local volumes.
const (
	// LayoutDirectory is a plain folder; its capacity is advisory.
	LayoutDirectory LocalLayout = "Directory"
	// LayoutImage is a file of exactly the requested size; its capacity is enforced.
	LayoutImage LocalLayout = "Image"
)

// LocalAllocation is when an Image takes its room on the disk.
//
// +kubebuilder:validation:Enum=Full;Sparse
type LocalAllocation string

// Allocations of images.
const (
	// AllocationFull takes all of the room when the volume is made.
	AllocationFull LocalAllocation = "Full"
	// AllocationSparse takes room for what is written when it is written.
	AllocationSparse LocalAllocation = "Sparse"
)

// ImageFile is the name of the image in the directory of a volume of layout Image.
const ImageFile = "image"
