package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A node that is lost, and whose cloud takes its time", func() {
	var w *nodeWorld
	var node *corev1.Node
	var pv *corev1.PersistentVolume
	BeforeEach(func() {
		w = newNodeWorld()
		_, pv, node = cloudedIn(w.world, forcing("Never"))
		update(w.world, node, func(node *corev1.Node) { node.Annotations = map[string]string{attach.ManagedAnnotation: "true"} })
		pod := Pod("user", "node-1", "data")
		w.create(pod)
		w.settle()
		w.uses(node, volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle))
		w.delete(pod)
		w.dispatch()
		w.storage.SetLatency(600 * time.Millisecond) // longer than anybody waits
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

	It("leaves no attachment behind where somebody detached the disk by hand, and the Node object is gone", func() {
		w.delete(node)
		w.storage.DetachBehind(pv.Spec.CSI.VolumeHandle)

		expectTaken()
	})
})
