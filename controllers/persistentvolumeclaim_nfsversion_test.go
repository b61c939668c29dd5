package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// share is a backend of an NFS server.
func share(changed func(*stowagev1alpha1.StorageBackendSpec)) *stowagev1alpha1.StorageBackend {
	return LocalBackend("share", func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local, object.Spec.NFS = nil, &stowagev1alpha1.NFSBackend{Server: "files.example.com", Path: "/exports/volumes"}
		changed(&object.Spec)
	})
}

// The API server checks mount options of StorageBackends by CEL, the reconciler those of StorageClasses, which any
// user may write. One table keeps the three copies of the rule the same.
var _ = DescribeTable("A version of NFS in a mount option is taken or refused alike by StorageBackends and by claims of a class",
	func(option string, known bool) {
		w := newWorld(reconciler.ClusterScope)
		options := []stowagev1alpha1.MountOption{"hard", stowagev1alpha1.MountOption(option)}
		inBackend := w.direct.Create(context.Background(), share(func(spec *stowagev1alpha1.StorageBackendSpec) {
			spec.NFS.MountOptions = options
		}), client.DryRunAll)
		inItsClass := w.direct.Create(context.Background(), share(func(spec *stowagev1alpha1.StorageBackendSpec) {
			spec.StorageClass.MountOptions = options
		}), client.DryRunAll)

		class := Class("odd", stowagev1alpha1.NFSDriver, map[string]string{"backend": "share"})
		class.MountOptions = []string{"hard", option}
		claim := Claim(InClass("odd"))
		w.create(share(func(*stowagev1alpha1.StorageBackendSpec) {}), class, claim)
		w.settle()
		message := w.condition(claim).Message

		if known {
			Expect(inBackend).NotTo(HaveOccurred())
			Expect(inItsClass).NotTo(HaveOccurred())
			Expect(message).NotTo(ContainSubstring("no version of NFS"))
			return
		}
		Expect(inBackend).To(MatchError(ContainSubstring(": mountOptions must name a version of NFS that exists")))
		Expect(inItsClass).To(MatchError(ContainSubstring("storageClass.mountOptions must name a version of NFS that exists")))
		Expect(message).To(ContainSubstring(option + `", which is no version of NFS`))
	},
	func(option string, _ bool) string { return option },
	Entry(nil, "vers=3", true), Entry(nil, "vers=4", true), Entry(nil, "vers=4.0", true), Entry(nil, "vers=4.1", true), Entry(nil, "vers=4.2", true),
	Entry(nil, "nfsvers=3", true), Entry(nil, "nfsvers=4.2", true), Entry(nil, "v3", true), Entry(nil, "v4.1", true),
	Entry(nil, "vers=", false), Entry(nil, "vers=2", false), Entry(nil, "vers=5", false), Entry(nil, "vers=4.3", false), Entry(nil, "vers=4x2", false),
	Entry(nil, "vers=4.1.1", false), Entry(nil, "nfsvers=40", false), Entry(nil, "v2", false), Entry(nil, "v42", false), Entry(nil, "v4.", false),
	// They only look like versions, and mean something else, or nothing.
	Entry(nil, "v", true), Entry(nil, "version=5", true), Entry(nil, "minorversion=1", true), Entry(nil, "mountvers=2", true), Entry(nil, "VERS=5", true),
)
