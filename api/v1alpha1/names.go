package v1alpha1

// Driver names: what StorageClasses name as provisioner, and what the kubelet,
// CSIDriver objects and VolumeAttachments know Stowage's backends by.
const (
	NFSDriver   = "nfs.stowage.dev"
	LocalDriver = "local.stowage.dev"
	GCEDriver   = "gce.stowage.dev"
)

// TopologyNodeLabel is the label of a Node whose value volume affinity, CSINode
// and CSIStorageCapacity use for node-local volumes. It is set by whoever
// registers the node; the hostname label is never used, because it may differ
// from the node's name and may be shared.
const TopologyNodeLabel = "topology.stowage.dev/node"

// BackendLabel is the label that Stowage's own objects (StorageClasses,
// NodeVolumes, volumes) carry: the name of the StorageBackend they belong to.
const BackendLabel = "stowage.dev/backend"

// RetainedLabel is on NodeVolumes whose data a person wants to keep though no volume
// object records it. No audit removes them.
const RetainedLabel = "stowage.dev/retained"

// Finalizers. Each is removed by the component that added it, as its last write.
const (
	// BackendInUseFinalizer keeps a StorageBackend until no volume uses it.
	BackendInUseFinalizer = "stowage.dev/in-use"
	// ProvisioningFinalizer keeps a claim while storage may exist for it that
	// no volume object records yet.
	ProvisioningFinalizer = "stowage.dev/provisioning"
	// ReclaimFinalizer keeps a volume object until its storage is gone from
	// the backend, or was left there on purpose.
	ReclaimFinalizer = "stowage.dev/reclaim"
	// NodeVolumeFinalizer keeps a NodeVolume until it is gone from the disk.
	NodeVolumeFinalizer = "stowage.dev/node-volume"
)

// ProvisioningAnnotation of a claim says what Stowage is provisioning for it:
// a JSON object with backend, node and attempt. It is a hint for resuming after
// a crash and for people; users can write annotations, so nothing is ever
// deleted on its authority.
const ProvisioningAnnotation = "stowage.dev/provisioning"

// AttachmentAnnotation of a VolumeAttachment says what was about to be attached, and to
// which machine: a JSON object with backend, volume and instance. It is written before
// the backend is called, for when the volume or the node object is gone. Backends
// attach and detach nothing that isn't theirs, whatever it says.
const AttachmentAnnotation = "stowage.dev/attachment"

// StrayAnnotation of a VolumeAttachment says that nobody asked for it: it was made to
// have a volume detached that was found attached.
const StrayAnnotation = "stowage.dev/stray"

// KeptAsAnnotation of a StorageClass is the name under which Stowage keeps it. A copy has
// another name, and is its maker's.
const KeptAsAnnotation = "stowage.dev/kept-as"

// FollowsPodsAnnotation of a CSINode says that the agent of its node follows pods, and
// mounts their gcePersistentDisks itself: by whose driver such disks are attached to the
// node is decided by it. Kubernetes lets no other node write it.
const FollowsPodsAnnotation = "stowage.dev/follows-pods"

// RecyclingAnnotation of a volume names the manager that empties its directory: of
// two that take themselves for the leader, the one that it names last is the one
// that may say it is done. It gives nobody a right to remove anything.
const RecyclingAnnotation = "stowage.dev/recycling"

// CapacityAnnotation of a claim and its volume says what their capacity is worth,
// once they grew: Advisory, a label that nothing enforces.
const (
	CapacityAnnotation = "stowage.dev/capacity"
	CapacityAdvisory   = "Advisory"
)

// BackendParameter is the StorageClass parameter that names the StorageBackend.
const BackendParameter = "backend"

// FSTypeParameter is the StorageClass parameter that names the file system of new
// volumes, in place of the StorageBackend's. It is that of CSI's external-provisioner:
// https://kubernetes-csi.github.io/docs/external-provisioner.html.
const FSTypeParameter = "csi.storage.k8s.io/fstype"

// Volume attributes: what the node needs to mount a volume, in the csi source
// of the volume object, which Kubernetes makes immutable.
const (
	// BackendAttribute is the name of the StorageBackend.
	BackendAttribute = "backend"
	// PathAttribute is the volume's absolute path: on its node (local backend), or
	// on its server (nfs backend).
	PathAttribute = "path"
	// ServerAttribute is the volume's server, as the backend names it (nfs
	// backend).
	ServerAttribute = "server"
	// MountOptionsAttribute are the backend's mount options, with commas between
	// them; those of the volume object come after them (nfs backend).
	MountOptionsAttribute = "mountOptions"
	// LayoutAttribute is the volume's LocalLayout (local backend).
	LayoutAttribute = "layout"
	// DiskAttribute is the path of the volume's disk in the Compute API, from projects/
	// on, for people (gce backend).
	DiskAttribute = "disk"
)
