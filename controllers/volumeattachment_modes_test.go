package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// The reconciler of nodes creates an attachment where Kubernetes' attach/detach controller
// would. The reconciler of attachments does not refuse it.
var _ = Describe("A volume with access modes for one writing node, or several reading ones", func() {
	It("is attached to a second node if the backend allows it", func() {
		w, attachment, pv := attached()
		other := machine("node-2")
		update(w, pv, WithModes(corev1.ReadWriteOnce, corev1.ReadOnlyMany))
		second := attachmentTo(other.Name, pv)
		w.create(other, second)

		w.settle()

		w.get(second)
		Expect(second.Status.AttachError).NotTo(BeNil())
		Expect(second.Status.AttachError.Message).To(ContainSubstring("is attached to gce://project/zone/node-1"))
		Expect(w.storage.Calls()).To(ContainElement("Attach " + pv.Spec.CSI.VolumeHandle + " to node-2"))
		expectAttached(w, attachment, pv, firstNode(w))
	})
})

var _ = Describe("A volume for one node that its csi source makes read-only", func() {
	It("is attached to one node, as its access mode says", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		other, shared := machine("node-2"), twinOf(pv)
		shared.Spec.CSI.ReadOnly = true
		second := attachmentTo(other.Name, shared)
		w.create(other, shared, attachmentTo(node.Name, shared), second)

		w.settle()

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
	})
})
