package v1alpha1

// NFSBackend makes volumes as directories of an NFS share.
//
// +kubebuilder:validation:XValidation:rule="self.server == oldSelf.server",message="server is immutable, the volumes on it would be orphaned: create another StorageBackend"
// +kubebuilder:validation:XValidation:rule="self.path == oldSelf.path",message="path is immutable, the volumes below it would be orphaned: create another StorageBackend"
type NFSBackend struct {
	// server is the host name or IP address of the NFS server. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$') || isIP(self)",message="server must be a host name or an IP address, such as nfs.example.com, 10.0.0.7 or fd00::7"
	// +required
	Server string `json:"server"`
	// path is the absolute path of the export on the server, or of a directory
	// below it. Immutable.
	// +kubebuilder:validation:XValidation:rule="!self.matches('[];&|<>$`\"*?!#(){}[]') && !self.contains(\"'\")",message="path must not contain characters that a shell reads: rename the directory on the server"
	// +required
	Path AbsolutePath `json:"path"`
	// directoryTemplate names each volume's directory below path. Known
	// fields: {{namespace}}, {{name}} and {{uid}} of the claim, and
	// {{labels.KEY}} and {{annotations.KEY}}: the claim must have such a label or
	// annotation. Characters other than letters, digits, '.', '_' and '-' become
	// '_'. The names of two claims must differ, so {{uid}}, or both {{namespace}}
	// and {{name}}, must occur. Default {{namespace}}-{{name}}-{{uid}}. A change
	// holds for volumes made after it.
	// +kubebuilder:default="{{namespace}}-{{name}}-{{uid}}"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.split('/').all(part, part.size() > 0 && !part.startsWith('.'))",message="directoryTemplate must be a relative path without empty parts and without parts that begin with a dot, such as '..'"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9._/-]|[{]{2}(namespace|name|uid|(labels|annotations)[.][A-Za-z0-9._/-]+)[}]{2})+$')",message="directoryTemplate may contain letters, digits, '.', '_', '-', '/' and the fields {{namespace}}, {{name}}, {{uid}}, {{labels.KEY}} and {{annotations.KEY}}"
	// +kubebuilder:validation:XValidation:rule="self.contains('{{uid}}') || (self.contains('{{namespace}}') && self.contains('{{name}}'))",message="directoryTemplate must contain {{uid}}, or both {{namespace}} and {{name}}: otherwise two claims would share a directory"
	// +optional
	DirectoryTemplate string `json:"directoryTemplate,omitempty"`
	// access is the owner and mode of each volume's directory.
	// +kubebuilder:default={}
	// +optional
	Access NFSAccess `json:"access,omitzero"`
	// onDelete is what happens to a volume's directory when the volume is deleted:
	// Delete removes it, Archive renames it, Retain leaves it. Default Delete. A
	// change holds for deletions that begin after it.
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
	// mountOptions apply to every mount of this backend's volumes, before those
	// of the StorageClass. A change holds for volumes made after it.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(option, !option.matches('^((nfs)?vers=|v[0-9])') || option.matches('^((nfs)?vers=|v)(3|4|4[.][012])$'))",message="mountOptions must name a version of NFS that exists: vers=3, 4, 4.0, 4.1 or 4.2; or set nfsVersion"
	// +listType=atomic
	// +optional
	MountOptions []MountOption `json:"mountOptions,omitempty"`
	// allowInline lets pods of every namespace have volumes of this share without
	// a claim. Those are csi volumes of driver nfs.stowage.dev that name this
	// backend in volumeAttributes.backend, and nothing else. Each is an empty
	// directory in .stowage-inline, with the owner and mode of access, and is
	// removed with its pod. Its size has no limit. Default false. A change holds
	// for pods created after it: pods that have such a volume keep it.
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
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-7]{3,4}$')",message="mode must be three or four octal digits, such as 0770"
	// +optional
	Mode string `json:"mode,omitempty"`
}

// NFSDeletion is what happens to a volume's directory when the volume is deleted.
type NFSDeletion string

// What happens to the directory of a deleted NFS volume.
const (
	NFSDelete  NFSDeletion = "Delete"
	NFSArchive NFSDeletion = "Archive"
	NFSRetain  NFSDeletion = "Retain"
)
