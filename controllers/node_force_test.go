package controllers

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A node that does not release a volume that no pod needs", func() {
	var w *nodeWorld
	var node *corev1.Node
	var pod *corev1.Pod
	BeforeEach(func() {
		w = newNodeWorld()
		node, pod, _ = w.running("data")
		w.delete(pod)
	})
	expectKept := func() {
		GinkgoHelper()
		w.settle()
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("DeletionTimestamp", BeNil())))
	}
	expectTaken := func() {
		GinkgoHelper()
		w.settle()
		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
	}

	It("keeps it while it is Ready, however long that is", func() {
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		update(w.world, node, func(node *corev1.Node) { node.Spec.Taints = outOfServiceTaint() })

		expectKept()
	})

	It("loses it once it is not Ready for the time in the manager's flag", func() {
		w.becomesNotReady(node)
		w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
		expectKept()

		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		expectTaken()
		Expect(w.volumesAttached(node)).To(BeEmpty())
	})

	It("loses it at once when a taint promises that it is off", func() {
		w.becomesNotReady(node)
		update(w.world, node, func(node *corev1.Node) { node.Spec.Taints = outOfServiceTaint() })

		expectTaken()
	})

	It("keeps it while its Node object is gone, until the manager's time is over", func() {
		w.delete(node)
		w.settle()
		w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
		expectKept()

		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		expectTaken()
	})

	It("keeps it if it came back, and the cache doesn't show that yet", func() {
		w.becomesNotReady(node)
		update(w.world, node, func(node *corev1.Node) { node.Spec.Taints = outOfServiceTaint() })
		w.views.nodes.Client = nodeIndexes{stale{w, []client.Object{node.DeepCopy()}}}
		w.updateStatus(node, func(status *corev1.NodeStatus) { status.Conditions[0].Status = corev1.ConditionTrue })

		expectKept()
	})

	It("keeps it if a pod wants it again, and the cache doesn't show that yet", func() {
		w.becomesNotReady(node)
		update(w.world, node, func(node *corev1.Node) { node.Spec.Taints = outOfServiceTaint() })
		w.views.nodes.Client = nodeIndexes{withoutPodLists{w}}
		w.create(Pod("user", "node-1", "data"))

		expectKept()
	})

	It("has a minute to report what it uses, when it registered again", func() {
		w.delete(node)
		again := managedNode("node-1")
		Eventually(time.Now).WithTimeout(10 * time.Second).
			Should(BeTemporally(">", w.attachmentsOf("node-1")[0].CreationTimestamp.Add(time.Second)))
		w.create(again)
		expectKept()

		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		expectTaken()
	})
})

var _ = Describe("A node with a machine in a cloud", func() {
	It("keeps a disk of ours until the machine is known to be off", func() {
		w, pv, node := nodeUsingDisk()
		w.becomesNotReady(node)
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.settle()
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("DeletionTimestamp", BeNil())))

		w.storage.SetMachine(identityOf(node), backend.MachineStopped)
		w.settle()

		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
	})
})

func outOfServiceTaint() []corev1.Taint {
	return []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
}

// withoutPodLists is a cache that shows no pods yet.
type withoutPodLists struct{ client.Client }

func (c withoutPodLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, are := list.(*corev1.PodList); are {
		return nil
	}
	return c.Client.List(ctx, list, options...)
}
