package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// LocalBackend makes volumes on the nodes' own disks, through the node agents.
//
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path is immutable, the volumes below it would be orphaned: create another StorageBackend"
type LocalBackend struct {
	// path is the absolute path of the folder that holds the volumes, on every
	// node of the backend, below the node agent's base folder (by default
	// /var/lib/stowage). Immutable.
	// +required
	Path AbsolutePath `json:"path"`
	// nodeSelector picks the nodes whose disks are used, by their labels.
	// Default: every node. A change holds for volumes made after it.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// layout says how a volume lies on the disk: Directory, a plain folder
	// whose capacity is advisory, or Image, a file of exactly the asked size,
	// whose capacity is enforced. Default Directory. A change holds for
	// volumes made after it.
	// +kubebuilder:default=Directory
	// +optional
	Layout LocalLayout `json:"layout,omitempty"`
	// fsType is the file system in an Image: ext4 or xfs. Default ext4. A
	// change holds for volumes made after it.
	// +kubebuilder:default=ext4
	// +kubebuilder:validation:Enum=ext4;xfs
	// +optional
	FSType string `json:"fsType,omitempty"`
	// reservedCapacity is how much of each disk is never given to volumes, in
	// bytes. Default 0. A change holds for volumes made after it.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0')) && !string(self).matches('[mun]$')",message="reservedCapacity must be a whole number of bytes, such as 10Gi, and not negative"
	// +optional
	ReservedCapacity *resource.Quantity `json:"reservedCapacity,omitempty"`
}

// LocalLayout says how a local volume lies on its disk.
//
// +kubebuilder:validation:Enum=Directory;Image
type LocalLayout string

// Layouts of local volumes.
const (
	// LayoutDirectory is a plain folder; its capacity is advisory.
	LayoutDirectory LocalLayout = "Directory"
	// LayoutImage is a file of exactly the asked size; its capacity is enforced.
	LayoutImage LocalLayout = "Image"
)
