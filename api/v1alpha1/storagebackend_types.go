package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageBackend is a place where storage comes from: an NFS share, disks local
// to nodes, or GCE persistent disks. StorageClasses name it in their parameter
// "backend".
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=sb,categories=stowage
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity.total`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.capacity.used`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumes`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of a StorageBackend must be at most 63 characters, because it is used as a label value"
type StorageBackend struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the administrator asks for.
	// +required
	Spec StorageBackendSpec `json:"spec"`
	// status is what the operator observed. It is written by the operator only.
	// +optional
	Status StorageBackendStatus `json:"status,omitzero"`
}

// StorageBackendList is a list of StorageBackends.
//
// +kubebuilder:object:root=true
type StorageBackendList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the backends.
	Items []StorageBackend `json:"items"`
}

// StorageBackendSpec is a union of the kinds of backend (exactly one of nfs,
// local and gce) and what all kinds share.
//
// +kubebuilder:validation:XValidation:rule="(has(self.nfs) ? 1 : 0) + (has(self.local) ? 1 : 0) + (has(self.gce) ? 1 : 0) == 1",message="set exactly one of nfs, local and gce: a backend has one kind"
// +kubebuilder:validation:XValidation:rule="has(self.nfs) == has(oldSelf.nfs) && has(self.local) == has(oldSelf.local) && has(self.gce) == has(oldSelf.gce)",message="the kind of a backend can't be changed, its volumes would be orphaned: create another StorageBackend"
// +kubebuilder:validation:XValidation:rule="!has(self.storageClass) || !has(oldSelf.storageClass) || (has(self.storageClass.name) ? self.storageClass.name : '') == (has(oldSelf.storageClass.name) ? oldSelf.storageClass.name : '')",message="storageClass.name is immutable: remove storageClass, then set it again with another name"
// +kubebuilder:validation:XValidation:rule="!has(self.storageClass) || !has(oldSelf.storageClass) || self.storageClass.reclaimPolicy == oldSelf.storageClass.reclaimPolicy",message="storageClass.reclaimPolicy is immutable, as it is in a StorageClass: remove storageClass, then set it again"
// +kubebuilder:validation:XValidation:rule="!has(self.storageClass) || !has(oldSelf.storageClass) || (has(self.storageClass.volumeBindingMode) ? self.storageClass.volumeBindingMode : '') == (has(oldSelf.storageClass.volumeBindingMode) ? oldSelf.storageClass.volumeBindingMode : '')",message="storageClass.volumeBindingMode is immutable, as it is in a StorageClass: remove storageClass, then set it again"
type StorageBackendSpec struct {
	// nfs makes volumes as directories of an NFS share.
	// +optional
	NFS *NFSBackend `json:"nfs,omitempty"`
	// local makes volumes on the nodes' own disks.
	// +optional
	Local *LocalBackend `json:"local,omitempty"`
	// gce makes volumes as GCE persistent disks.
	// +optional
	GCE *GCEBackend `json:"gce,omitempty"`

	// storageClass asks the operator to keep a StorageClass for this backend.
	// Unset: none is kept, and one that was kept before is removed. Volumes
	// and bound claims need no class and are not touched.
	// +optional
	StorageClass *StorageClassTemplate `json:"storageClass,omitempty"`
	// deletion says what happens to the data of deleted claims.
	// +optional
	Deletion DeletionPolicy `json:"deletion,omitzero"`
	// attachment says when a volume may be taken from a node by force.
	// Used by kinds that attach (gce).
	// +kubebuilder:default={}
	// +optional
	Attachment AttachmentPolicy `json:"attachment,omitzero"`
	// maxConcurrentOperations is how many calls to this backend may run at
	// once. Further ones wait. A change holds for calls that begin after it.
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxConcurrentOperations int32 `json:"maxConcurrentOperations,omitempty"`
}

// StorageClassTemplate describes the StorageClass that the operator keeps for a
// backend. A class of that name that isn't the operator's is never adopted.
type StorageClassTemplate struct {
	// name of the StorageClass. Default: the name of the backend. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	Name string `json:"name,omitempty"`
	// isDefault marks the class as the cluster's default for claims that name
	// none. Default false. A change is written to the class.
	// +optional
	IsDefault bool `json:"isDefault,omitempty"`
	// reclaimPolicy of the volumes made with the class: Delete removes a
	// volume's data with its claim (after deletion.retainFor), Retain keeps it.
	// Default Delete. Immutable; an existing volume's own policy can be changed
	// on the PersistentVolume.
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum=Delete;Retain
	// +optional
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy,omitempty"`
	// volumeBindingMode: Immediate provisions as soon as the claim is there,
	// WaitForFirstConsumer once a pod that uses it has a node. Default
	// WaitForFirstConsumer for local and gce, Immediate for nfs. Immutable.
	// +kubebuilder:validation:Enum=Immediate;WaitForFirstConsumer
	// +optional
	VolumeBindingMode storagev1.VolumeBindingMode `json:"volumeBindingMode,omitempty"`
	// allowVolumeExpansion lets users grow their claims. Default false. A
	// change is written to the class.
	// +optional
	AllowVolumeExpansion bool `json:"allowVolumeExpansion,omitempty"`
	// mountOptions are given to every mount of a volume made with the class.
	// A change holds for volumes made after it.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MountOptions []MountOption `json:"mountOptions,omitempty"`
}

// MountOption is one option of mount(8), such as "noatime" or "timeo=600":
// letters, digits and _ . : = / @ % + -, so that one option can't carry another
// or a shell's syntax.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.:=/@%+-]+$`
type MountOption string

// DeletionPolicy says what happens to the data of deleted claims.
type DeletionPolicy struct {
	// retainFor is the undelete window: the data of a deleted claim, of a
	// volume whose reclaim policy is Delete, is kept this long after the volume
	// was released, counted from the volume's status.lastPhaseTransitionTime.
	// Default 0s. A change holds at once, also for volumes already released.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="retainFor must not be negative"
	// +optional
	RetainFor metav1.Duration `json:"retainFor,omitzero"`
}

// AttachmentPolicy says when a volume may be taken from a node by force.
type AttachmentPolicy struct {
	// forceDetachAfter is how long a node must have been not Ready before its
	// volumes are detached without its consent, as a duration ("6m", "1h30m"),
	// or "Never". A Ready node is never forced. Default 6m. A change holds at
	// once.
	// +kubebuilder:default="6m"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^(Never|([0-9]+(\.[0-9]+)?(s|m|h))+)$`
	// +optional
	ForceDetachAfter string `json:"forceDetachAfter,omitempty"`
}

// NFSBackend makes volumes as directories of an NFS share.
//
// +kubebuilder:validation:XValidation:rule="self.server == oldSelf.server",message="server is immutable, the volumes on it would be orphaned: create another StorageBackend"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path is immutable, the volumes below it would be orphaned: create another StorageBackend"
type NFSBackend struct {
	// server is the host name or IP address of the NFS server. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:\[\]-]+$`
	// +required
	Server string `json:"server"`
	// path is the absolute path of the export on the server, or of a directory
	// below it. Immutable.
	// +required
	Path AbsolutePath `json:"path"`
	// directoryTemplate names each volume's directory below path. Known
	// fields: {{namespace}}, {{name}} and {{uid}} of the claim. Default
	// {{namespace}}-{{name}}-{{uid}}. A change holds for volumes made after it.
	// +kubebuilder:default="{{namespace}}-{{name}}-{{uid}}"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(part, part == '..' || part == '.' || part == '')",message="directoryTemplate must be a relative path without empty, '.' or '..' parts"
	// +optional
	DirectoryTemplate string `json:"directoryTemplate,omitempty"`
	// access is the owner and mode of each volume's directory.
	// +kubebuilder:default={}
	// +optional
	Access NFSAccess `json:"access,omitzero"`
	// onDelete says what becomes of a volume's directory when the volume is
	// deleted: Delete removes it, Archive renames it out of the way, Retain
	// leaves it. Default Delete. A change holds for deletions that begin
	// after it.
	// +kubebuilder:default=Delete
	// +kubebuilder:validation:Enum=Delete;Archive;Retain
	// +optional
	OnDelete NFSDeletion `json:"onDelete,omitempty"`
	// nfsVersion is the protocol version that nodes mount with: 3, 4, 4.0, 4.1
	// or 4.2. Default: what the node and the server agree on. A change holds
	// for volumes made after it.
	// +kubebuilder:validation:Enum="3";"4";"4.0";"4.1";"4.2"
	// +optional
	NFSVersion string `json:"nfsVersion,omitempty"`
	// mountOptions are given to every mount of this backend's volumes, before
	// those of the StorageClass. A change holds for volumes made after it.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MountOptions []MountOption `json:"mountOptions,omitempty"`
	// allowInline lets pods use a directory of this share as an inline
	// ephemeral volume, without a claim. Default false.
	// +optional
	AllowInline bool `json:"allowInline,omitempty"`
}

// NFSAccess is the owner and mode of a volume's directory.
type NFSAccess struct {
	// uid is the numeric owner. Default 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +optional
	UID int64 `json:"uid,omitempty"`
	// gid is the numeric group. Default 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	// +optional
	GID int64 `json:"gid,omitempty"`
	// mode is the directory's permission bits, in octal. Default "0770".
	// +kubebuilder:default="0770"
	// +kubebuilder:validation:Pattern=`^[0-7]{3,4}$`
	// +optional
	Mode string `json:"mode,omitempty"`
}

// NFSDeletion says what becomes of a volume's directory when it is deleted.
type NFSDeletion string

// What becomes of a deleted NFS volume's directory.
const (
	NFSDelete  NFSDeletion = "Delete"
	NFSArchive NFSDeletion = "Archive"
	NFSRetain  NFSDeletion = "Retain"
)

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
	// reservedCapacity is how much of each disk is never given to volumes.
	// Default 0. A change holds for volumes made after it.
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

// GCEBackend makes volumes as GCE persistent disks.
//
// +kubebuilder:validation:XValidation:rule="self.project == oldSelf.project",message="project is immutable, the disks in it would be orphaned: create another StorageBackend"
type GCEBackend struct {
	// project is the id of the Google Cloud project. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[a-z0-9.:-]+$`
	// +required
	Project string `json:"project"`
	// zones are those in which disks are made. A change holds for disks made
	// after it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9-]+$`
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +required
	Zones []string `json:"zones"`
	// endpoint is the URL of the Compute API. Default: Google's own.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && (url(self).getScheme() == 'https' || url(self).getScheme() == 'http')",message="endpoint must be a URL such as https://compute.example.com/compute/v1/"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// credentialsSecret is the Secret, in the manager's own namespace, with a
	// service account key under "key.json". Default: the machine's own
	// identity.
	// +optional
	CredentialsSecret *SecretReference `json:"credentialsSecret,omitempty"`
	// diskType is the type of new disks. Default pd-balanced.
	// +kubebuilder:default="pd-balanced"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	// +optional
	DiskType string `json:"diskType,omitempty"`
	// labels are put on new disks, beside Stowage's own.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// provisionedIOPS is asked for each new disk, in I/O operations a second,
	// where the disk type takes it. Default: the type's own.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProvisionedIOPS *int64 `json:"provisionedIOPS,omitempty"`
}

// SecretReference names a Secret in the manager's own namespace.
type SecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// AbsolutePath is a clean absolute path other than "/": no empty, "." or ".."
// parts and no trailing slash.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^/[^\x00-\x1f\\:,]+$`
// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.substring(1).split('/').exists(part, part == '..' || part == '.' || part == '')",message="must be an absolute path without empty, '.' or '..' parts and without a slash at its end, such as /var/lib/stowage/fast"
type AbsolutePath string

// BackendType is the kind of a backend, as status.type shows it.
type BackendType string

// Kinds of backend.
const (
	NFSType   BackendType = "NFS"
	LocalType BackendType = "Local"
	GCEType   BackendType = "GCE"
)

// StorageBackendStatus is what the operator observed.
type StorageBackendStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// type is the kind of the backend: NFS, Local or GCE.
	// +optional
	Type BackendType `json:"type,omitempty"`
	// driver is the CSI driver name that StorageClasses of this backend have as
	// their provisioner.
	// +optional
	Driver string `json:"driver,omitempty"`
	// capacity of the backend, where it can tell.
	// +optional
	Capacity *BackendCapacity `json:"capacity,omitempty"`
	// volumes is how many volume objects use the backend.
	// +optional
	Volumes *int32 `json:"volumes,omitempty"`
	// orphans is how many volumes the backend holds that carry Stowage's and
	// this cluster's mark and that no volume object records.
	// +optional
	Orphans *int32 `json:"orphans,omitempty"`
	// conditions are Accepted, Reachable, StorageClassReady, and Ready, which
	// is True when all others are.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BackendCapacity is how much a backend can hold and holds.
type BackendCapacity struct {
	// total is what the backend can hold, in bytes; for local, the sum of its
	// nodes' disks.
	// +optional
	Total *resource.Quantity `json:"total,omitempty"`
	// used is what its volumes were given, in bytes.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
}
