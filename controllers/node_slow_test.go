package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

var _ = Describe("A node that is lost, with a slow cloud", func() {
	var w *nodeWorld
	var node *corev1.Node
	var pv *corev1.PersistentVolume
	BeforeEach(func() {
		w, pv, node = nodeUsingDisk()
		w.dispatch()
		w.storage.SetLatency(600 * time.Millisecond) // longer than any call waits
	})
	expectTaken := func() {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			_ = w.reconcile("node-1")
			_ = w.roundOfAttachments()
			g.Expect(w.attachmentsOf("node-1")).To(BeEmpty())
		}).WithTimeout(10 * time.Second).Should(Succeed())
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
	}

	It("loses a volume once the cloud says that the machine is stopped", func() {
		w.becomesNotReady(node)
		w.storage.SetMachine(identityOf(node), backend.MachineStopped)

		expectTaken()
	})

	It("keeps no attachment if the disk was detached by hand, and the Node object is gone", func() {
		w.delete(node)
		w.storage.DetachBehind(pv.Spec.CSI.VolumeHandle)

		expectTaken()
	})
})
