package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/volume"
)

// A user with such a PersistentVolume would have any disk of the project, on any node: only
// volumes of source gcePersistentDisk go by a disk's path, and only where it is translated.
var _ = Describe("A PersistentVolume of our driver with a disk's path as its handle", func() {
	It("is not attached", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		forged := twinOf(pv)
		forged.Spec.CSI.VolumeHandle = volume.DiskPath("project", "zone", "legacy")
		w.storage.AddExisting(forged.Spec.CSI.VolumeHandle)
		attachment := attachmentTo(node.Name, forged)
		w.create(forged, attachment)

		w.settle()

		Expect(w.storage.ExistingOn(forged.Spec.CSI.VolumeHandle)).To(BeEmpty())
		w.get(attachment)
		Expect(attachment.Status.AttachError).NotTo(BeNil())
		Expect(*attachment.Status.AttachError.ErrorCode).To(BeEquivalentTo(codes.FailedPrecondition))
	})
})
