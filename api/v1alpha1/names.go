package v1alpha1

// Driver names of the backends: the provisioner of StorageClasses, and the name in
// CSIDriver objects, in VolumeAttachments and at the kubelet.
const (
	NFSDriver   = "nfs.stowage.dev"
	LocalDriver = "local.stowage.dev"
	GCEDriver   = "gce.stowage.dev"
)

// TopologyNodeLabel is the label of a Node that volume affinity, CSINode and CSIStorageCapacity use for node-local
// volumes. The component that registers the node sets it. The hostname label isn't used: it may differ from the
// node's name, and two nodes may share it.
const TopologyNodeLabel = "topology.stowage.dev/node"

// BackendLabel of Stowage's own objects (StorageClasses, NodeVolumes, volumes) is the name of their StorageBackend.
const BackendLabel = "stowage.dev/backend"

// RetainedLabel is on NodeVolumes without a volume object, because a user deleted that
// with the policy Retain. No audit removes them.
const RetainedLabel = "stowage.dev/retained"

// UndeletableLabel is on a VolumeSnapshotContent that keeps the snapshot of a deleted VolumeSnapshot until the end of the
// undelete window, or until another VolumeSnapshot is bound to it. Its value is the UID of the StorageBackend.
const UndeletableLabel = "stowage.dev/undeletable"

// Finalizers. Each is removed by the component that added it, as its last write.
const (
	// BackendInUseFinalizer keeps a StorageBackend until no volume uses it.
	BackendInUseFinalizer = "stowage.dev/in-use"
	// ProvisioningFinalizer keeps a claim while it may have storage that no volume
	// object records yet.
	ProvisioningFinalizer = "stowage.dev/provisioning"
	// ReclaimFinalizer keeps a volume object until its storage is gone from
	// the backend, or is retained there.
	ReclaimFinalizer = "stowage.dev/reclaim"
	// NodeVolumeFinalizer keeps a NodeVolume until it is gone from the disk.
	NodeVolumeFinalizer = "stowage.dev/node-volume"
)

// ProvisioningAnnotation of a claim has what Stowage is provisioning for it: a JSON object with backend, node and attempt.
// It is a hint to resume after a crash, and for people. Users can write annotations, so it never decides what is deleted.
const ProvisioningAnnotation = "stowage.dev/provisioning"

// AttachmentAnnotation of a VolumeAttachment has what was about to be attached, and to which machine: a JSON object with
// backend, volume and instance. It is written before the backend is called, and read when the volume or the node object
// is gone. Backends attach and detach only their own volumes, whatever the annotation has.
const AttachmentAnnotation = "stowage.dev/attachment"

// StrayAnnotation marks a VolumeAttachment that no pod needs. It was created to detach a
// dangling attachment: a volume that the backend reported as attached.
const StrayAnnotation = "stowage.dev/stray"

// KeptAsAnnotation of a StorageClass is the name under which Stowage keeps it. A user's copy of it has another name.
const KeptAsAnnotation = "stowage.dev/kept-as"

// FollowsPodsAnnotation of a CSINode means that the agent of its node follows pods, and mounts their gcePersistentDisks
// itself. It decides which driver attaches such disks to the node. Kubernetes lets no other node write it.
const FollowsPodsAnnotation = "stowage.dev/follows-pods"

// RecyclingAnnotation of a volume names the manager that empties its directory. Of two managers that act as the leader,
// only the one that it names last may report the end. It gives no right to remove anything.
const RecyclingAnnotation = "stowage.dev/recycling"

// CapacityAnnotation of a claim and its volume that grew is Advisory if nothing enforces
// their capacity.
const (
	CapacityAnnotation = "stowage.dev/capacity"
	CapacityAdvisory   = "Advisory"
)

// BackendParameter is the StorageClass parameter that names the StorageBackend.
const BackendParameter = "backend"

// FSTypeParameter is the StorageClass parameter that names the file system of new volumes, in place of the StorageBackend's.
// It is that of CSI's external-provisioner: https://kubernetes-csi.github.io/docs/external-provisioner.html.
const FSTypeParameter = "csi.storage.k8s.io/fstype"

// Volume attributes: what the node needs to mount a volume. They are in the csi source
// of the volume object, which Kubernetes makes immutable.
const (
	// BackendAttribute is the name of the StorageBackend.
	BackendAttribute = "backend"
	// PathAttribute is the volume's absolute path: on its node (local backend), or on its server (nfs backend).
	PathAttribute = "path"
	// ServerAttribute is the volume's server, as the backend names it (nfs backend).
	ServerAttribute = "server"
	// MountOptionsAttribute are the backend's mount options, with commas between
	// them; those of the volume object come after them (nfs backend).
	MountOptionsAttribute = "mountOptions"
	// LayoutAttribute is the volume's LocalLayout (local backend).
	LayoutAttribute = "layout"
	// DiskAttribute is the path of the volume's only disk in the Compute API, for people (gce backend).
	DiskAttribute = "disk"
)
