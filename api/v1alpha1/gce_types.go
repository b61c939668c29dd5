package v1alpha1

// GCEBackend makes volumes as GCE persistent disks.
//
// +kubebuilder:validation:XValidation:rule="self.project == oldSelf.project",message="project is immutable, the disks in it would be orphaned: create another StorageBackend"
type GCEBackend struct {
	// project is the id of the Google Cloud project. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9.:-]+$')",message="project must be the id of a Google Cloud project: lower case letters, digits, '-', '.' and ':'"
	// +required
	Project string `json:"project"`
	// zones of the disks. The StorageClass of the backend allows only nodes in
	// these zones. A change holds for disks made after it, and replaces the class.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9-]+$`
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +required
	Zones []string `json:"zones"`
	// endpoint is the URL of the Compute API. Default: Google's own. Without credentialsSecret, calls to an http://
	// endpoint, such as gce-mock, carry no credentials. A change holds for calls that begin after it. The new endpoint
	// must have the same disks.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && (url(self).getScheme() == 'https' || url(self).getScheme() == 'http')",message="endpoint must be a URL such as https://compute.example.com/compute/v1/"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// credentialsSecret is the Secret, in the manager's own namespace, with a service account key under
	// "key.json". Default: the machine's own identity. A change of either holds for calls that begin after it.
	// +optional
	CredentialsSecret *SecretReference `json:"credentialsSecret,omitempty"`
	// diskType is the type of new disks. Default pd-balanced. Disks have the requested size, rounded up to
	// whole GiB, and at least the minimum of the type. A change holds for disks made after it.
	// +kubebuilder:default="pd-balanced"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	// +optional
	DiskType string `json:"diskType,omitempty"`
	// fsType is the file system that nodes make on a new disk, unless it is used as a device: ext4 or xfs.
	// Default ext4. A change holds for volumes made after it.
	// +kubebuilder:default=ext4
	// +kubebuilder:validation:Enum=ext4;xfs
	// +optional
	FSType string `json:"fsType,omitempty"`
	// labels of new disks, beside Stowage's own. Default: none. A change holds
	// for disks made after it.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^[a-z][a-z0-9_-]{0,62}$'))",message="the keys of labels must be lower case letters, digits, '-' and '_', at most 63, with a letter first"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('stowage-'))",message="keys of labels that begin with stowage- are Stowage's own"
	// +optional
	Labels map[string]GCELabelValue `json:"labels,omitempty"`
	// provisionedIOPS of each new disk of type diskType, in I/O operations a
	// second, if the type supports it. Default: that of the type. A change holds for disks made
	// after it.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProvisionedIOPS *int64 `json:"provisionedIOPS,omitempty"`
	// encryptionKey is the key of Cloud KMS that encrypts new disks, such as
	// projects/keys/locations/europe-west3/keyRings/disks/cryptoKeys/data. Default: a key of Google's. The Compute
	// Engine service agent needs the role cloudkms.cryptoKeyEncrypterDecrypter. A copy of a disk must have the key of
	// its source. A change holds for disks made after it.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^projects/[a-z0-9.:-]+/locations/[a-z0-9-]+/keyRings/[a-zA-Z0-9_-]+/cryptoKeys/[a-zA-Z0-9_-]+$')",message="encryptionKey must be a key of Cloud KMS without a version: projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY"
	// +optional
	EncryptionKey string `json:"encryptionKey,omitempty"`
	// classParameters are the parameters that StorageClasses of this backend may have, by the names of Google's own
	// CSI driver. In disks of such a class they come before what is said here; labels are added. Default: none. A
	// change holds at once: a claim without a PersistentVolume waits while its class has a parameter that isn't
	// listed.
	// +kubebuilder:validation:MaxItems=9
	// +listType=set
	// +optional
	ClassParameters []GCEClassParameter `json:"classParameters,omitempty"`
	// existingDisks lets Stowage attach volumes of source gcePersistentDisk to nodes with agents that follow pods.
	// Their disks exist already, in this project and these zones. Stowage attaches and detaches such a disk, and never
	// deletes it, whatever the reclaim policy of its volume is. Default false. A change holds for disks attached after
	// it. Only one backend with existingDisks may have a zone of a project. Only with --scope=cluster.
	// +optional
	ExistingDisks bool `json:"existingDisks,omitempty"`
}

// GCEClassParameter is a parameter of a StorageClass.
//
// +kubebuilder:validation:Enum=type;labels;disk-encryption-kms-key;replication-type;provisioned-iops-on-create;provisioned-throughput-on-create;storage-pools;resource-tags;enable-multi-zone-provisioning
type GCEClassParameter string

// Parameters of StorageClasses, by the names of Google's own CSI driver.
const (
	// GCETypeParameter is the type of disks.
	GCETypeParameter GCEClassParameter = "type"
	// GCELabelsParameter has labels of disks, such as team=shop,tier=gold.
	GCELabelsParameter GCEClassParameter = "labels"
	// GCEKeyParameter is the key of Cloud KMS that encrypts disks.
	GCEKeyParameter GCEClassParameter = "disk-encryption-kms-key"
	// GCEReplicationParameter is regional-pd for new disks that are replicated in two zones of a region, or none.
	GCEReplicationParameter GCEClassParameter = "replication-type"
	// GCEIOPSParameter is the provisioned IOPS of new disks.
	GCEIOPSParameter GCEClassParameter = "provisioned-iops-on-create"
	// GCEThroughputParameter is the provisioned throughput of new disks, in bytes per second.
	GCEThroughputParameter GCEClassParameter = "provisioned-throughput-on-create"
	// GCEPoolsParameter has storage pools, one for each zone, as projects/P/zones/Z/storagePools/NAME.
	GCEPoolsParameter GCEClassParameter = "storage-pools"
	// GCETagsParameter has tags of Google's Resource Manager for new disks, such as 123456789/team/shop.
	GCETagsParameter GCEClassParameter = "resource-tags"
	// GCEEachZoneParameter is true for restored volumes that are only read, and have a disk in each zone.
	GCEEachZoneParameter GCEClassParameter = "enable-multi-zone-provisioning"
)

// GCELabelValue is the value of a label of a disk: lower case letters, digits,
// '-' and '_'.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9_-]*$`
type GCELabelValue string

// SecretReference names a Secret in the manager's own namespace.
type SecretReference struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name must be that of one Secret: lower case letters, digits, '-' and '.'; templates such as ${pvc.namespace} aren't supported"
	// +required
	Name string `json:"name"`
}
