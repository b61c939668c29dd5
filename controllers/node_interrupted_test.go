package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/attach"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// writesOfAMove is how many writes it takes to attach a disk of ours, or to detach it:
// what the claim says of its use included.
const writesOfAMove = 4

var _ = Describe("What a node has", func() {
	for _, kind := range []fault{lost, unanswered, contended} {
		It("ends the same whichever write of getting it is "+string(kind), func() {
			for number := range writesOfAMove {
				w, pv, node := nodeWithDisk()
				w.create(Pod("user", "node-1", "data"))

				w.interrupted(number, kind)

				Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(Equal([]string{node.Spec.ProviderID}))
				Expect(w.volumesAttached(node)).To(HaveLen(1))
			}
		})

		It("ends the same whichever write of losing it is "+string(kind), func() {
			for number := range writesOfAMove {
				w, pv, node := nodeWithDisk()
				pod := Pod("user", "node-1", "data")
				w.create(pod)
				w.settle()
				w.delete(pod)

				w.interrupted(number, kind)

				Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
				Expect(w.attachmentsOf("node-1")).To(BeEmpty())
				Expect(w.volumesAttached(node)).To(BeEmpty())
			}
		})
	}
})

// nodeWithDisk is a node that a disk of ours can be attached to.
func nodeWithDisk() (*nodeWorld, *corev1.PersistentVolume, *corev1.Node) {
	GinkgoHelper()
	w := &nodeWorld{world: newWorldIn(newMemory())}
	w.restart()
	_, pv, node := cloudedIn(w.world)
	update(w.world, node, func(node *corev1.Node) { node.Annotations = map[string]string{attach.ManagedAnnotation: "true"} })
	return w, pv, node
}

// interrupted has one of the next writes fail, and restarts.
func (w *nodeWorld) interrupted(number int, kind fault) {
	GinkgoHelper()
	w.failWriteBy(w.round, number, kind)
	w.restart()
	w.settle()
}
