package controllers

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A node that the cache shows as it was", func() {
	var w *nodeWorld
	BeforeEach(func() { w = newNodeWorld() })

	It("keeps what it began to use since", func() {
		node, pod, name := w.running("data")
		w.uses(node)
		old := node.DeepCopy()
		w.uses(node, name)
		w.delete(pod)
		w.views.nodes.Client = nodeIndexes{stale{w, []client.Object{old}}}

		Expect(w.reconcile("node-1")).To(Succeed())

		Expect(w.volumesAttached(node)).To(HaveExactElements(string(name)))
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("DeletionTimestamp", BeNil())))
	})

	It("keeps what an earlier manager marked since, though the cache shows no pod yet", func() {
		old := managedNode("node-1")
		w.create(old)
		name := w.disk("data")
		w.create(Pod("user", "node-1", "data"))
		w.settle()
		w.uses(managedNode("node-1"), name)
		w.views.nodes.Client = nodeIndexes{withoutPodLists{stale{w, []client.Object{old}}}}

		Expect(w.reconcile("node-1")).To(Succeed())

		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("DeletionTimestamp", BeNil())))
	})

	It("does not get into volumesAttached what an earlier manager detached", func() {
		node := managedNode("node-1")
		w.create(node, w.attachment("node-1", "data"))
		w.disk("data")
		w.attachForeign()
		seen := w.attachmentsOf("node-1")[0].DeepCopy()
		leaving := seen.DeepCopy()
		update(w.world, leaving, func(object *storagev1.VolumeAttachment) { object.Finalizers = []string{"example.com/slow"} })
		w.delete(leaving)
		w.create(Pod("user", "node-1", "data"))
		w.views.nodes.Client = nodeIndexes{staleList{w, seen}}

		Expect(w.reconcile("node-1")).To(Succeed())

		Expect(w.volumesAttached(node)).To(BeEmpty())
	})

	It("keeps an attachment that changed since", func() {
		node := managedNode("node-1")
		w.create(node, w.attachment("node-1", "data"))
		w.disk("data")
		seen := w.attachmentsOf("node-1")[0].DeepCopy()
		w.attachForeign()
		w.views.nodes.Client = nodeIndexes{staleList{w, seen}}

		Expect(w.reconcile("node-1")).To(Succeed())

		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("DeletionTimestamp", BeNil())))
	})
})

var _ = Describe("What a node costs", func() {
	It("is the same whatever other nodes have", func() {
		w := newNodeWorld()
		w.running("data")
		alone := w.costOf("node-1")
		for i := range 5 {
			name := fmt.Sprintf("other-%d", i)
			w.create(managedNode(name), Pod(name, name, name))
			w.disk(name)
		}
		w.settle()

		Expect(w.costOf("node-1")).To(Equal(alone))
	})
})

// costOf is what a pass over a node reads: calls, and objects that they returned.
func (w *nodeWorld) costOf(node string) [2]int {
	GinkgoHelper()
	counted := &counting{Client: nodeIndexes{w}}
	w.views.nodes.Client = counted
	Expect(w.reconcile(node)).To(Succeed())
	Expect(counted.calls).NotTo(BeZero())
	return [2]int{counted.calls, counted.objects}
}

// counting counts what is read through it.
type counting struct {
	client.Client
	calls, objects int
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.calls++
	c.objects++
	return c.Client.Get(ctx, key, object, options...)
}

func (c *counting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	c.calls++
	c.objects += meta.LenList(list)
	return err
}
