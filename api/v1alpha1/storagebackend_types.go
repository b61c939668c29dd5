package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StorageBackend is a source of storage: an NFS share, disks local to nodes, GCE
// persistent disks, or a CSI driver. StorageClasses name it in their parameter "backend";
// classes of a CSI driver name it as their provisioner.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=sb,categories=stowage
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity.total`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.capacity.used`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumes`
// +kubebuilder:printcolumn:name="Orphans",type=integer,priority=1,JSONPath=`.status.orphans`
// +kubebuilder:printcolumn:name="Lost",type=integer,priority=1,JSONPath=`.status.lostVolumes`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of a StorageBackend must be at most 63 characters, because it is used as a label value"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.csi) || self.metadata.name == self.spec.csi.driver",message="the name of a StorageBackend with csi must be the driver's name: a driver has one StorageBackend"
type StorageBackend struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the administrator requests.
	// +required
	Spec StorageBackendSpec `json:"spec"`
	// status is what the operator observed. Only the operator writes it.
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
// local, gce and csi) and what all kinds share.
//
// +kubebuilder:validation:XValidation:rule="[has(self.nfs), has(self.local), has(self.gce), has(self.csi)].exists_one(set, set)",message="set exactly one of nfs, local, gce and csi: a backend has one kind"
// +kubebuilder:validation:XValidation:rule="has(self.nfs) == has(oldSelf.nfs) && has(self.local) == has(oldSelf.local) && has(self.gce) == has(oldSelf.gce) && has(self.csi) == has(oldSelf.csi)",message="the kind of a backend can't be changed, its volumes would be orphaned: create another StorageBackend"
// +kubebuilder:validation:XValidation:rule="!has(self.nfs) || !has(self.storageClass) || !has(self.storageClass.mountOptions) || self.storageClass.mountOptions.all(option, !option.matches('^((nfs)?vers=|v[0-9])') || option.matches('^((nfs)?vers=|v)(3|4|4[.][012])$'))",message="storageClass.mountOptions must name a version of NFS that exists: vers=3, 4, 4.0, 4.1 or 4.2; or set nfs.nfsVersion"
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
	// csi makes volumes with any CSI driver's Controller service.
	// +optional
	CSI *CSIBackend `json:"csi,omitempty"`

	// storageClass is the StorageClass that the operator keeps for this backend.
	// Unset: it keeps none, and removes one that it kept before. Volumes and bound
	// claims need no class and are not touched.
	// +optional
	StorageClass *StorageClassTemplate `json:"storageClass,omitempty"`
	// deletion is what happens to the data of deleted claims.
	// +optional
	Deletion DeletionPolicy `json:"deletion,omitzero"`
	// attachment decides when a volume is detached from a node by force. Kinds that
	// attach (gce, csi) use it.
	// +kubebuilder:default={}
	// +optional
	Attachment AttachmentPolicy `json:"attachment,omitzero"`
	// audit is the comparison of the backend with the cluster.
	// +kubebuilder:default={}
	// +optional
	Audit AuditPolicy `json:"audit,omitzero"`
	// maxConcurrentOperations is how many calls to this backend may run at once.
	// Further calls wait. A call that the storage has accepted, such as an
	// operation of a cloud that is in progress, no longer counts. A change holds
	// for calls that begin after it.
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxConcurrentOperations int32 `json:"maxConcurrentOperations,omitempty"`
}

// StorageClassTemplate describes the StorageClass that the operator keeps for a
// backend. The operator never adopts a class of that name that it didn't create.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",message="storageClass.name is immutable: remove storageClass, then set it again with another name"
// +kubebuilder:validation:XValidation:rule="has(self.reclaimPolicy) == has(oldSelf.reclaimPolicy) && (!has(self.reclaimPolicy) || self.reclaimPolicy == oldSelf.reclaimPolicy)",message="storageClass.reclaimPolicy is immutable, as it is in a StorageClass: remove storageClass, then set it again"
// +kubebuilder:validation:XValidation:rule="has(self.volumeBindingMode) == has(oldSelf.volumeBindingMode) && (!has(self.volumeBindingMode) || self.volumeBindingMode == oldSelf.volumeBindingMode)",message="storageClass.volumeBindingMode is immutable, as it is in a StorageClass: remove storageClass, then set it again"
type StorageClassTemplate struct {
	// name of the StorageClass. Default: the name of the backend. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="storageClass.name must be a name that Kubernetes accepts: lower case letters, digits, '-' and '.'"
	// +optional
	Name string `json:"name,omitempty"`
	// isDefault makes the class the cluster's default for claims without a class.
	// Default false. A change is written to the class.
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
	// volumeBindingMode: Immediate provisions as soon as the claim exists,
	// WaitForFirstConsumer once a pod with the claim has a node. Default
	// WaitForFirstConsumer for local, gce and csi, Immediate for nfs. Immutable.
	// +kubebuilder:validation:Enum=Immediate;WaitForFirstConsumer
	// +optional
	VolumeBindingMode storagev1.VolumeBindingMode `json:"volumeBindingMode,omitempty"`
	// allowVolumeExpansion lets users grow their claims. Default false. A
	// change is written to the class.
	// +optional
	AllowVolumeExpansion bool `json:"allowVolumeExpansion,omitempty"`
	// mountOptions apply to every mount of a volume made with the class.
	// A change holds for volumes made after it.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MountOptions []MountOption `json:"mountOptions,omitempty"`
}

// DeletionPolicy is what happens to the data of deleted claims and VolumeSnapshots.
type DeletionPolicy struct {
	// retainFor is the undelete window. The data of a deleted claim is kept this long after the release of its
	// volume. It holds for volumes with the reclaim policy Delete, and counts from the volume's
	// status.lastPhaseTransitionTime. A duration in h, m and s, such as "72h". Default 0s. A change holds at
	// once, also for volumes already released.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(h|m|s|ms))+$') && duration(self) >= duration('0s')",message="retainFor must be a duration such as 72h or 1h30m, and not negative"
	// +optional
	RetainFor metav1.Duration `json:"retainFor,omitzero"`
	// retainSnapshotsFor is the undelete window of snapshots. The snapshot of a deleted VolumeSnapshot with the policy
	// Delete is kept this long by another VolumeSnapshotContent, and counts from the creation of that. A duration as
	// of retainFor. Default 0s. A change holds at once. Group snapshots have no window.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(h|m|s|ms))+$') && duration(self) >= duration('0s')",message="retainSnapshotsFor must be a duration such as 72h or 1h30m, and not negative"
	// +optional
	RetainSnapshotsFor metav1.Duration `json:"retainSnapshotsFor,omitzero"`
}

// AttachmentPolicy decides when a volume is detached from a node by force.
type AttachmentPolicy struct {
	// forceDetachAfter is how long a node must have been not Ready before its
	// volumes are detached by force, as a duration ("6m", "1h30m"), or "Never". A
	// volume is never detached by force from a Ready node. Default 6m. A change
	// holds at once.
	// +kubebuilder:default="6m"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || (self.matches('^([0-9]+([.][0-9]+)?(h|m|s))+$') && duration(self) >= duration('0s'))",message="forceDetachAfter must be Never, or a duration such as 6m or 1h30m"
	// +optional
	ForceDetachAfter string `json:"forceDetachAfter,omitempty"`
}

// AuditPolicy is the comparison of a backend with the cluster. Storage that no
// object records is an orphan, and a volume object without storage is a lost
// volume.
type AuditPolicy struct {
	// interval is the time from the end of an audit to the next one, as a duration
	// ("1h", "90m") of at least 1m. Default 1h. A change holds at once.
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(h|m|s))+$') && duration(self) >= duration('1m')",message="interval must be a duration such as 1h or 90m, and at least 1m"
	// +optional
	Interval metav1.Duration `json:"interval,omitzero"`
	// removeOrphansAfter removes orphans, with their data and for ever, that every
	// audit found for at least this long. It is a duration of at least 1h, such as
	// "168h". The storage of a PersistentVolume that was deleted with policy
	// Retain is no orphan, and is never removed: the storage itself has a mark.
	// (It has no mark if the finalizers of the PersistentVolume were removed by
	// hand.) Four kinds are kept: an orphan that a pod may use; one with a
	// nodeName; one with a claim that still exists and has no other volume; one
	// whose id doesn't fit its record. Default unset: orphans are reported and
	// never removed. A change holds from the next audit on.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(h|m|s))+$') && duration(self) >= duration('1h')",message="removeOrphansAfter must be a duration such as 168h, and at least 1h"
	// +optional
	RemoveOrphansAfter *metav1.Duration `json:"removeOrphansAfter,omitempty"`
}

// BackendType is the kind of a backend, as status.type shows it.
type BackendType string

// Kinds of backend.
const (
	NFSType   BackendType = "NFS"
	LocalType BackendType = "Local"
	GCEType   BackendType = "GCE"
	CSIType   BackendType = "CSI"
)

// StorageBackendStatus is what the operator observed.
type StorageBackendStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// type is the kind of the backend: NFS, Local, GCE or CSI.
	// +optional
	Type BackendType `json:"type,omitempty"`
	// driver is the CSI driver name that StorageClasses have as their provisioner.
	// +optional
	Driver string `json:"driver,omitempty"`
	// capacity of the backend, if the backend reports it.
	// +optional
	Capacity *BackendCapacity `json:"capacity,omitempty"`
	// volumes is how many volume objects use the backend.
	// +optional
	Volumes *int32 `json:"volumes,omitempty"`
	// orphans is how many volumes and snapshots the backend holds that no object
	// records. They have the mark of Stowage and this cluster, and aren't being made.
	// +optional
	Orphans *int32 `json:"orphans,omitempty"`
	// lostVolumes is how many volume objects have no storage in the backend.
	// +optional
	LostVolumes *int32 `json:"lostVolumes,omitempty"`
	// audit is what the last audit found. It is absent before the first, and where
	// the backend can't list its volumes.
	// +optional
	Audit *AuditStatus `json:"audit,omitempty"`
	// conditions are Accepted, Reachable, StorageClassReady, Ready (all of these are True), and SnapshotsServed.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BackendCapacity is how much a backend can hold and holds.
type BackendCapacity struct {
	// total is what the backend can hold, in bytes.
	// +optional
	Total *resource.Quantity `json:"total,omitempty"`
	// used is how much of it is used, by volumes and other files, in bytes.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
}

// AuditStatus is what an audit found.
type AuditStatus struct {
	// time at which the audit ended.
	Time metav1.Time `json:"time"`
	// orphans are those found first, up to 100. status.orphans counts them all.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=id
	// +optional
	Orphans []Orphan `json:"orphans,omitempty"`
	// retained is how many volumes and snapshots the backend holds without an object
	// that are no orphans: a user deleted the object with the policy Retain, or a CSI call made them.
	// +optional
	Retained int32 `json:"retained,omitempty"`
	// lostVolumes are the names of volume objects without storage, up to 100.
	// status.lostVolumes counts them all.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	LostVolumes []string `json:"lostVolumes,omitempty"`
	// unaudited says what no audit of this backend can find, and why (csi). Empty:
	// an audit finds orphans and lost volumes.
	// +optional
	Unaudited string `json:"unaudited,omitempty"`
}

// Orphan is storage that no object in the cluster records.
type Orphan struct {
	// id of the volume in the backend.
	ID string `json:"id"`
	// claimNamespace is the namespace of its claim, as the backend recorded it.
	// +optional
	ClaimNamespace string `json:"claimNamespace,omitempty"`
	// claimName is that claim's name.
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// claimUID is that claim's UID.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`
	// snapshotUID is the UID of the VolumeSnapshot of a snapshot, which no audit removes.
	// +optional
	SnapshotUID types.UID `json:"snapshotUID,omitempty"`
	// nodeName is the node with the disk of a volume without a NodeVolume (local
	// backend). Such a volume is never removed.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// since is when an audit first found it. Every audit since then did.
	Since metav1.Time `json:"since"`
	// removing means that spec.audit.removeOrphansAfter has passed, and that the
	// storage is being removed.
	// +optional
	Removing bool `json:"removing,omitempty"`
}
