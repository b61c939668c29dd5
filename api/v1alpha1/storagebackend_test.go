package v1alpha1_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const local = "local: {path: /var/lib/stowage/fast}"

const (
	keyOfCloud  = "encryptionKey must be a key of Cloud KMS without a version"
	oneKind     = "set exactly one of nfs, local, gce and csi: a backend has one kind"
	cleanPath   = "must be an absolute path without empty, '.' or '..' parts and without a slash at its end, such as /var/lib/stowage/fast"
	safePath    = "must not contain control characters, commas, colons or backslashes"
	oneOption   = "must be one mount option: letters, digits and _ . : = / @ % + - only"
	wholeBytes  = "reservedCapacity must be a whole number of bytes, such as 10Gi, and not negative"
	window      = "retainFor must be a duration such as 72h or 1h30m, and not negative"
	forceAfter  = "forceDetachAfter must be Never, or a duration such as 6m or 1h30m"
	auditTime   = "interval must be a duration such as 1h or 90m, and at least 1m"
	orphanAge   = "removeOrphansAfter must be a duration such as 168h, and at least 1h"
	hostName    = "server must be a host name or an IP address, such as nfs.example.com, 10.0.0.7 or fd00::7"
	template    = "directoryTemplate must be a relative path without empty parts and without parts that begin with a dot, such as '..'"
	shellPath   = "path must not contain characters that a shell reads: rename the directory on the server"
	fields      = "directoryTemplate may contain letters, digits, '.', '_', '-', '/' and the fields {{namespace}}, {{name}}, {{uid}}, {{labels.KEY}} and {{annotations.KEY}}"
	distinct    = "directoryTemplate must contain {{uid}}, or both {{namespace}} and {{name}}: otherwise two claims would share a directory"
	octal       = "mode must be three or four octal digits, such as 0770"
	className   = "storageClass.name must be a name that Kubernetes accepts: lower case letters, digits, '-' and '.'"
	projectID   = "project must be the id of a Google Cloud project: lower case letters, digits, '-', '.' and ':'"
	endpointURL = "endpoint must be a URL such as https://compute.example.com/compute/v1/"
	labelKeys   = "the keys of labels must be lower case letters, digits, '-' and '_', at most 63, with a letter first"
	endpoint    = "endpoint must be a socket such as unix:///csi/csi.sock, or an address such as tcp://driver.example.com:10000"
	timeout     = "timeout must be a duration such as 15s or 2m, at least 1s and at most 10m"
	ownLabels   = "keys of labels that begin with stowage- are Stowage's own"
)

var _ = Describe("a StorageBackend", func() {
	DescribeTable("is accepted with",
		func(ctx SpecContext, spec string) {
			Expect(api.Create(ctx, object("StorageBackend", "valid", spec), client.DryRunAll)).To(Succeed())
		},
		Entry("a local path and no more", local),
		Entry("a path of one part", "local: {path: /disks}"),
		Entry("dots and spaces inside a part of the path", "local: {path: '/var/lib/..stowage/a b...'}"),
		Entry("everything that local knows", "local: {path: /d, nodeSelector: {disk: ssd}, layout: Image, fsType: xfs, reservedCapacity: 10Gi}"),
		Entry("a reserved capacity of zero", "local: {path: /d, reservedCapacity: 0}"),
		Entry("a reserved capacity as a bare number of bytes", "local: {path: /d, reservedCapacity: 1073741824}"),
		Entry("volumes that are forgotten with their node", "local: {path: /d, nodeGone: {policy: Forget, after: 1h}}"),
		Entry("volumes that wait for their node", "local: {path: /d, nodeGone: {policy: Wait}}"),
		Entry("an NFS server and path", "nfs: {server: nfs.example.com, path: /export}"),
		Entry("an NFS server by IPv4 address", "nfs: {server: 10.0.0.7, path: /export}"),
		Entry("an NFS server by IPv6 address", "nfs: {server: 'fd00::7', path: /export}"),
		Entry("a nested directory template", "nfs: {server: s, path: /e, directoryTemplate: '{{namespace}}/{{name}}'}"),
		Entry("a directory template of the uid alone", "nfs: {server: s, path: /e, directoryTemplate: 'pvc-{{uid}}'}"),
		Entry("a directory template with labels and annotations", "nfs: {server: s, path: /e, directoryTemplate: '{{labels.app.kubernetes.io/name}}/{{annotations.team}}-{{uid}}'}"),
		Entry("an export with a space", "nfs: {server: s, path: '/exports/team a'}"),
		Entry("the version of NFS as a mount option", "nfs: {server: s, path: /e, mountOptions: [vers=4.1, nfsvers=3]}"),
		Entry("the version of NFS in short, and in the class", "nfs: {server: s, path: /e, mountOptions: [v4.2]}\nstorageClass: {mountOptions: [vers=3]}"),
		Entry("mount options", "nfs: {server: s, path: /e, mountOptions: [noatime, timeo=600, 'sec=krb5:krb5i', 'clientaddr=fe80::1%eth0']}"),
		Entry("a GCE project and a zone", "gce: {project: 'example.com:storage-1', zones: [europe-west3-a]}"),
		Entry("labels of disks", "gce: {project: p, zones: [z], labels: {team: storage, cost-centre_7: '', stowage: a_b-c}}"),
		Entry("the file system of disks", "gce: {project: p, zones: [z], fsType: xfs}"),
		Entry("a key of disks", "gce: {project: p, zones: [z], encryptionKey: 'projects/example.com:k/locations/l/keyRings/Ring_1/cryptoKeys/Data-1'}"),
		Entry("parameters of classes", "gce: {project: p, zones: [z], classParameters: [type, labels, disk-encryption-kms-key]}"),
		Entry("all parameters of classes", "gce: {project: p, zones: [z], classParameters: [type, labels, disk-encryption-kms-key, "+
			"provisioned-iops-on-create, provisioned-throughput-on-create, replication-type, storage-pools, resource-tags]}"),
		Entry("the endpoint of a mock", "gce: {project: p, zones: [z], endpoint: 'http://127.0.0.1:8000/compute/v1/'}"),
		Entry("a CSI driver behind a socket", "csi: {driver: valid, endpoint: 'unix:///csi/csi.sock'}"),
		Entry("a CSI driver elsewhere, with a certificate", "csi: {driver: valid, endpoint: 'tcp://driver.example.com:10000', tlsSecret: {name: driver.tls}}"),
		Entry("everything that csi knows", "csi: {driver: valid, endpoint: 'unix:///s', parameters: {tier: gold}, fsType: xfs, timeout: 1m30s, secrets: "+
			"{provision: {name: a}, controllerPublish: {name: a}, controllerExpand: {name: a}, controllerModify: {name: a}, nodeStage: {name: a}, nodePublish: {name: a}, nodeExpand: {name: a}}}"),
		Entry("a StorageClass of all defaults", local+"\nstorageClass: {}"),
		Entry("an undelete window", local+"\ndeletion: {retainFor: 1h30m}"),
		Entry("an undelete window of nothing", local+"\ndeletion: {retainFor: 0s}"),
		Entry("an audit more often", local+"\naudit: {interval: 90s}"),
		Entry("orphans that are removed", local+"\naudit: {removeOrphansAfter: 168h}"),
		Entry("no detaching by force", local+"\nattachment: {forceDetachAfter: Never}"),
		Entry("detaching by force after a time", local+"\nattachment: {forceDetachAfter: 1h30m}"),
	)

	DescribeTable("is refused, with a message that helps, for",
		func(ctx SpecContext, spec, message string) {
			err := api.Create(ctx, object("StorageBackend", "invalid", spec), client.DryRunAll)
			Expect(err).To(MatchError(ContainSubstring(message)))
		},
		Entry("no kind", "{maxConcurrentOperations: 1}", oneKind),
		Entry("two kinds", "nfs: {server: s, path: /e}\n"+local, oneKind),
		Entry("three kinds", "nfs: {server: s, path: /e}\ngce: {project: p, zones: [z]}\n"+local, oneKind),
		Entry("an unknown kind", "ceph: {pool: p}", `unknown field "spec.ceph"`),
		Entry("an unknown field of a kind", "local: {path: /d, size: 1Gi}", `unknown field "spec.local.size"`),
		Entry("local without a path", "local: {}", "spec.local.path: Required value"),

		Entry("a relative path", "local: {path: var/lib/stowage}", cleanPath),
		Entry("an empty path", "local: {path: ''}", "spec.local.path in body should be at least 2 chars long"),
		Entry("the root as path", "local: {path: /}", "spec.local.path in body should be at least 2 chars long"),
		Entry("a path of slashes", "local: {path: //}", cleanPath),
		Entry("a path that climbs up", "local: {path: /var/lib/stowage/../../etc}", cleanPath),
		Entry("a path that ends by climbing up", "local: {path: /var/lib/..}", cleanPath),
		Entry("a path with a dot part", "local: {path: /var/./lib}", cleanPath),
		Entry("a path with an empty part", "local: {path: /var//lib}", cleanPath),
		Entry("a path with a slash at its end", "local: {path: /var/lib/}", cleanPath),
		Entry("a path with a newline", `local: {path: "/var/lib\n/etc"}`, safePath),
		Entry("a path that ends in a newline", `local: {path: "/var/lib\n"}`, safePath),
		Entry("a path with a zero byte", `local: {path: "/var/lib\0"}`, safePath),
		Entry("a path with a comma", "local: {path: '/var/lib,exec'}", safePath),
		Entry("a path with a colon", "local: {path: '/var:/etc'}", safePath),
		Entry("a path with a backslash", `local: {path: '/var\lib'}`, safePath),
		Entry("a path that is too long", "local: {path: /"+strings.Repeat("x", 1024)+"}", "Too long: may not be more than 1024"),
		Entry("an unknown layout", "local: {path: /d, layout: Tape}", `supported values: "Directory", "Image"`),
		Entry("an unknown file system", "local: {path: /d, fsType: ntfs}", `supported values: "ext4", "xfs"`),
		Entry("a file system without an image", "local: {path: /d, layout: Directory, fsType: xfs}", "fsType is the file system of an Image: set layout to Image, or remove fsType"),
		Entry("a file system and the default layout", "local: {path: /d, fsType: xfs}", "fsType is the file system of an Image"),
		Entry("a version of NFS that doesn't exist", "nfs: {server: s, path: /e, mountOptions: [noatime, vers=5]}", "mountOptions must name a version of NFS that exists"),
		Entry("a version of NFS that doesn't exist, as nfsvers", "nfs: {server: s, path: /e, mountOptions: [nfsvers=4.3]}", "mountOptions must name a version of NFS that exists"),
		Entry("a negative reserved capacity", "local: {path: /d, reservedCapacity: -1Gi}", wholeBytes),
		Entry("a negative reserved capacity as a number", "local: {path: /d, reservedCapacity: -1}", wholeBytes),
		Entry("a fraction of a byte", "local: {path: /d, reservedCapacity: 100m}", wholeBytes),
		Entry("a reserved capacity that is none", "local: {path: /d, reservedCapacity: lots}", "spec.local.reservedCapacity"),

		Entry("a node that is forgotten at once", "local: {path: /d, nodeGone: {policy: Forget}}", "after goes with policy Forget, and with no other"),
		Entry("a node that is waited for, for a while", "local: {path: /d, nodeGone: {after: 1h}}", "after goes with policy Forget, and with no other"),
		Entry("a node that is forgotten too soon", "local: {path: /d, nodeGone: {policy: Forget, after: 10s}}", "after must be a duration such as 1h or 30m, and at least 1m"),

		Entry("an empty server", "nfs: {server: '', path: /e}", "spec.nfs.server in body should be at least 1 chars long"),
		Entry("a server with a path in it", "nfs: {server: 'host:/export', path: /e}", hostName),
		Entry("a server that is an option", "nfs: {server: '-o', path: /e}", hostName),
		Entry("a server with a space", "nfs: {server: 'host name', path: /e}", hostName),
		Entry("a relative export", "nfs: {server: s, path: export}", cleanPath),
		Entry("an export with a command", "nfs: {server: s, path: '/export;reboot'}", shellPath),
		Entry("an export with a variable", "nfs: {server: s, path: '/$HOME'}", shellPath),
		Entry("an export with a quote", `nfs: {server: s, path: "/it's"}`, shellPath),
		Entry("an export with a newline", `nfs: {server: s, path: "/a\nb"}`, "must not contain control characters"),
		Entry("an export with an option", "nfs: {server: s, path: '/a,exec'}", "must not contain control characters, commas"),
		Entry("a directory template that hides", "nfs: {server: s, path: /e, directoryTemplate: '.stowage/{{uid}}'}", template),
		Entry("a directory template with a label that has no key", "nfs: {server: s, path: /e, directoryTemplate: '{{uid}}-{{labels.}}'}", fields),
		Entry("an absolute directory template", "nfs: {server: s, path: /e, directoryTemplate: '/{{uid}}'}", template),
		Entry("a directory template that climbs up", "nfs: {server: s, path: /e, directoryTemplate: '../{{uid}}'}", template),
		Entry("a directory template with an unknown field", "nfs: {server: s, path: /e, directoryTemplate: '{{uid}}-{{owner}}'}", fields),
		Entry("a directory template with half a field", "nfs: {server: s, path: /e, directoryTemplate: '{{uid}}-{{name}'}", fields),
		Entry("a directory template that all claims share", "nfs: {server: s, path: /e, directoryTemplate: volumes}", distinct),
		Entry("a directory template that two namespaces share", "nfs: {server: s, path: /e, directoryTemplate: '{{name}}'}", distinct),
		Entry("a mode that isn't octal", "nfs: {server: s, path: /e, access: {mode: '0999'}}", octal),
		Entry("a mode by letters", "nfs: {server: s, path: /e, access: {mode: 'rwx'}}", octal),
		Entry("a negative owner", "nfs: {server: s, path: /e, access: {uid: -1}}", "should be greater than or equal to 0"),
		Entry("the owner that means none", "nfs: {server: s, path: /e, access: {uid: 4294967295}}", "should be less than or equal to 4294967294"),
		Entry("an unknown end of a directory", "nfs: {server: s, path: /e, onDelete: Shred}", `supported values: "Delete", "Archive", "Retain"`),
		Entry("an unknown NFS version", "nfs: {server: s, path: /e, nfsVersion: '2'}", `supported values: "3", "4", "4.0", "4.1", "4.2"`),
		Entry("a version of NFS that doesn't exist, in short", "nfs: {server: s, path: /e, mountOptions: [v5]}", "mountOptions must name a version of NFS that exists"),
		Entry("a version of NFS that doesn't exist, in the class", "nfs: {server: s, path: /e}\nstorageClass: {mountOptions: [vers=5]}", "storageClass.mountOptions must name a version of NFS that exists"),
		Entry("two mount options in one", "nfs: {server: s, path: /e, mountOptions: ['ro,exec']}", oneOption),
		Entry("a mount option with a newline", `nfs: {server: s, path: /e, mountOptions: ["ro\nexec"]}`, oneOption),
		Entry("a mount option with a command", "nfs: {server: s, path: /e, mountOptions: ['ro;reboot']}", oneOption),
		Entry("a mount option with a variable", "nfs: {server: s, path: /e, mountOptions: ['$HOME']}", oneOption),
		Entry("a mount option with a space", "nfs: {server: s, path: /e, mountOptions: ['ro exec']}", oneOption),
		Entry("an empty mount option", "nfs: {server: s, path: /e, mountOptions: ['']}", "should be at least 1 chars long"),

		Entry("a project with a slash", "gce: {project: a/b, zones: [z]}", projectID),
		Entry("a project that climbs up", "gce: {project: '../x', zones: [z]}", projectID),
		Entry("no zones", "gce: {project: p, zones: []}", "spec.gce.zones in body should have at least 1 items"),
		Entry("a zone twice", "gce: {project: p, zones: [z, z]}", `spec.gce.zones[1]: Duplicate value: "z"`),
		Entry("a zone with a slash", "gce: {project: p, zones: [a/b]}", "should match '^[a-z0-9-]+$'"),
		Entry("an endpoint that is no URL", "gce: {project: p, zones: [z], endpoint: compute}", endpointURL),
		Entry("an endpoint that is a file", "gce: {project: p, zones: [z], endpoint: 'file:///etc'}", endpointURL),
		Entry("a Secret without a name", "gce: {project: p, zones: [z], credentialsSecret: {}}", "spec.gce.credentialsSecret.name: Required value"),
		Entry("a label key of capitals", "gce: {project: p, zones: [z], labels: {Team: storage}}", labelKeys),
		Entry("a label key with a domain", "gce: {project: p, zones: [z], labels: {example.com/team: storage}}", labelKeys),
		Entry("a label that is Stowage's own", "gce: {project: p, zones: [z], labels: {stowage-cluster: mine}}", ownLabels),
		Entry("a label with a space", "gce: {project: p, zones: [z], labels: {team: 'a b'}}", "should match '^[a-z0-9_-]*$'"),
		Entry("a file system of disks that is unknown", "gce: {project: p, zones: [z], fsType: btrfs}", `supported values: "ext4", "xfs"`),
		Entry("a key with a version", "gce: {project: p, zones: [z], encryptionKey: 'projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1'}", keyOfCloud),
		Entry("a key that climbs up", "gce: {project: p, zones: [z], encryptionKey: 'projects/p/locations/l/keyRings/../cryptoKeys/k'}", keyOfCloud),
		Entry("a parameter of classes that is unknown", "gce: {project: p, zones: [z], classParameters: [enable-storage-of-others]}", "Unsupported value: \"enable-storage-of-others\""),
		Entry("a parameter of classes twice", "gce: {project: p, zones: [z], classParameters: [type, type]}", `Duplicate value: "type"`),
		Entry("no I/O operations", "gce: {project: p, zones: [z], provisionedIOPS: 0}", "should be greater than or equal to 1"),

		Entry("a CSI driver under another name", "csi: {driver: disk.example.com, endpoint: 'unix:///s'}", "the name of a StorageBackend with csi must be the driver's name"),
		Entry("a CSI driver that is no name", "csi: {driver: Disk_X, endpoint: 'unix:///s'}", "driver must be a name that Kubernetes accepts for a CSIDriver"),
		Entry("a CSI driver of Stowage's own", "csi: {driver: local.stowage.dev, endpoint: 'unix:///s'}", "drivers of stowage.dev are Stowage's own"),
		Entry("a CSI driver without an endpoint", "csi: {driver: invalid}", "spec.csi.endpoint: Required value"),
		Entry("an endpoint that is a path", "csi: {driver: invalid, endpoint: /csi/csi.sock}", endpoint),
		Entry("an endpoint that is a relative socket", "csi: {driver: invalid, endpoint: 'unix://csi.sock'}", endpoint),
		Entry("an endpoint without a port", "csi: {driver: invalid, endpoint: 'tcp://driver', tlsSecret: {name: a}}", endpoint),
		Entry("an endpoint elsewhere without certificates", "csi: {driver: invalid, endpoint: 'tcp://driver:10000'}", "needs tlsSecret: calls carry secrets"),
		Entry("certificates for a socket", "csi: {driver: invalid, endpoint: 'unix:///s', tlsSecret: {name: a}}", "a unix socket needs none"),
		Entry("a parameter for a sidecar", "csi: {driver: invalid, endpoint: 'unix:///s', parameters: {csi.storage.k8s.io/fstype: xfs}}", "none begins with csi.storage.k8s.io/: use secrets and fsType"),
		Entry("a Secret for an unknown call", "csi: {driver: invalid, endpoint: 'unix:///s', secrets: {nodeUnstage: {name: a}}}", `unknown field "spec.csi.secrets.nodeUnstage"`),
		Entry("a template of a Secret's name", "csi: {driver: invalid, endpoint: 'unix:///s', secrets: {provision: {name: '${pvc.namespace}'}}}", "templates such as ${pvc.namespace} aren't supported"),
		Entry("a Secret of another namespace", "csi: {driver: invalid, endpoint: 'unix:///s', secrets: {provision: {name: a, namespace: b}}}", `unknown field "spec.csi.secrets.provision.namespace"`),
		Entry("calls without time", "csi: {driver: invalid, endpoint: 'unix:///s', timeout: 0s}", timeout),
		Entry("calls that take an hour", "csi: {driver: invalid, endpoint: 'unix:///s', timeout: 1h}", timeout),

		Entry("a StorageClass name that Kubernetes refuses", local+"\nstorageClass: {name: Fast_Disks}", className),
		Entry("an unknown reclaim policy", local+"\nstorageClass: {reclaimPolicy: Recycle}", `supported values: "Delete", "Retain"`),
		Entry("an unknown binding mode", local+"\nstorageClass: {volumeBindingMode: Later}", `supported values: "Immediate", "WaitForFirstConsumer"`),
		Entry("two mount options of the StorageClass in one", local+"\nstorageClass: {mountOptions: ['ro,exec']}", oneOption),
		Entry("audits without a pause", local+"\naudit: {interval: 1s}", auditTime),
		Entry("an audit interval that is no duration", local+"\naudit: {interval: daily}", auditTime),
		Entry("an audit interval beyond all time", local+"\naudit: {interval: 99999999999999h}", "audit.interval"),
		Entry("orphans that are removed at once", local+"\naudit: {removeOrphansAfter: 0s}", orphanAge),
		Entry("an age of orphans in days", local+"\naudit: {removeOrphansAfter: 7d}", orphanAge),
		Entry("a negative undelete window", local+"\ndeletion: {retainFor: -1h}", window),
		Entry("an undelete window in days", local+"\ndeletion: {retainFor: 3d}", window),
		Entry("an undelete window in words", local+"\ndeletion: {retainFor: three days}", window),
		Entry("an undelete window beyond all time", local+"\ndeletion: {retainFor: 99999999999999999999h}", window),
		Entry("an empty undelete window", local+"\ndeletion: {retainFor: ''}", window),
		Entry("a negative time to detach", local+"\nattachment: {forceDetachAfter: -6m}", forceAfter),
		Entry("a time to detach without a unit", local+"\nattachment: {forceDetachAfter: '6'}", forceAfter),
		Entry("a time to detach in words", local+"\nattachment: {forceDetachAfter: never}", forceAfter),
		Entry("no operations at once", local+"\nmaxConcurrentOperations: 0", "should be greater than or equal to 1"),
		Entry("too many operations at once", local+"\nmaxConcurrentOperations: 1001", "should be less than or equal to 1000"),
	)

	It("is refused with a name that is too long for a label", func(ctx SpecContext) {
		err := api.Create(ctx, object("StorageBackend", strings.Repeat("x", 64), local), client.DryRunAll)
		Expect(err).To(MatchError(ContainSubstring("the name of a StorageBackend must be at most 63 characters, because it is used as a label value")))
	})

	DescribeTable("can't be changed in",
		func(ctx SpecContext, before, after, message string) {
			backend := created(ctx, "StorageBackend", before)
			Expect(changed(ctx, backend, after)).To(MatchError(ContainSubstring(message)))
		},
		Entry("its kind", local, "nfs: {server: s, path: /e}", "the kind of a backend can't be changed, its volumes would be orphaned: create another StorageBackend"),
		Entry("its local path", local, "local: {path: /var/lib/stowage/slow}", "path is immutable, the volumes below it would be orphaned: create another StorageBackend"),
		Entry("its server", "nfs: {server: a, path: /e}", "nfs: {server: b, path: /e}", "server is immutable, the volumes on it would be orphaned: create another StorageBackend"),
		Entry("its export", "nfs: {server: a, path: /e}", "nfs: {server: a, path: /f}", "path is immutable, the volumes below it would be orphaned: create another StorageBackend"),
		Entry("its project", "gce: {project: a, zones: [z]}", "gce: {project: b, zones: [z]}", "project is immutable, the disks in it would be orphaned: create another StorageBackend"),
		Entry("the name of its class", local+"\nstorageClass: {name: a}", local+"\nstorageClass: {name: b}", "storageClass.name is immutable: remove storageClass, then set it again with another name"),
		Entry("the name of its class from the default", local+"\nstorageClass: {}", local+"\nstorageClass: {name: b}", "storageClass.name is immutable: remove storageClass, then set it again with another name"),
		Entry("the reclaim policy of its class", local+"\nstorageClass: {}", local+"\nstorageClass: {reclaimPolicy: Retain}", "storageClass.reclaimPolicy is immutable, as it is in a StorageClass: remove storageClass, then set it again"),
		Entry("the binding mode of its class", local+"\nstorageClass: {}", local+"\nstorageClass: {volumeBindingMode: Immediate}", "storageClass.volumeBindingMode is immutable, as it is in a StorageClass: remove storageClass, then set it again"),
	)

	DescribeTable("can be changed in",
		func(ctx SpecContext, before, after string) {
			Expect(changed(ctx, created(ctx, "StorageBackend", before), after)).To(Succeed())
		},
		Entry("its nodes", local, "local: {path: /var/lib/stowage/fast, nodeSelector: {disk: ssd}}"),
		Entry("the file system of its disks", "gce: {project: p, zones: [a]}", "gce: {project: p, zones: [a], fsType: xfs}"),
		Entry("the key of its disks", "gce: {project: p, zones: [a]}", "gce: {project: p, zones: [a], encryptionKey: projects/p/locations/l/keyRings/r/cryptoKeys/k}"),
		Entry("its zones", "gce: {project: p, zones: [a]}", "gce: {project: p, zones: [a, b]}"),
		Entry("its undelete window", local, local+"\ndeletion: {retainFor: 72h}"),
		Entry("its class, when it had none", local, local+"\nstorageClass: {name: a, reclaimPolicy: Retain}"),
		Entry("its class, when it shall have none", local+"\nstorageClass: {name: a}", local),
		Entry("what Kubernetes lets a class change", local+"\nstorageClass: {}", local+"\nstorageClass: {isDefault: true, allowVolumeExpansion: true, mountOptions: [noatime]}"),
	)

	DescribeTable("has, where nothing is said, the documented default of",
		func(ctx SpecContext, spec string, want OmegaMatcher, path ...string) {
			backend := object("StorageBackend", "defaults", spec)
			Expect(api.Create(ctx, backend, client.DryRunAll)).To(Succeed())
			got, _, err := unstructured.NestedFieldNoCopy(backend.Object, append([]string{"spec"}, path...)...)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(want)
		},
		Entry("maxConcurrentOperations", local, BeEquivalentTo(16), "maxConcurrentOperations"),
		Entry("forceDetachAfter", local, Equal("6m"), "attachment", "forceDetachAfter"),
		Entry("layout", local, Equal("Directory"), "local", "layout"),
		Entry("fsType", local, Equal("ext4"), "local", "fsType"),
		Entry("reclaimPolicy", local+"\nstorageClass: {}", Equal("Delete"), "storageClass", "reclaimPolicy"),
		Entry("volumeBindingMode, which the operator fills in", local+"\nstorageClass: {}", BeNil(), "storageClass", "volumeBindingMode"),
		Entry("the StorageClass, which is none", local, BeNil(), "storageClass"),
		Entry("the undelete window, which is none", local, BeNil(), "deletion"),
		Entry("directoryTemplate", "nfs: {server: s, path: /e}", Equal("{{namespace}}-{{name}}-{{uid}}"), "nfs", "directoryTemplate"),
		Entry("onDelete", "nfs: {server: s, path: /e}", Equal("Delete"), "nfs", "onDelete"),
		Entry("mode", "nfs: {server: s, path: /e}", Equal("0770"), "nfs", "access", "mode"),
		Entry("diskType", "gce: {project: p, zones: [z]}", Equal("pd-balanced"), "gce", "diskType"),
		Entry("fsType of disks", "gce: {project: p, zones: [z]}", Equal("ext4"), "gce", "fsType"),
	)
})
