package controllers

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume for one node at a time", func() {
	var w *nodeWorld
	BeforeEach(func() {
		w = newNodeWorld()
		w.create(managedNode("node-1"), managedNode("node-2"))
	})
	twoPods := func(volume string) {
		w.create(Pod("first", "node-1", volume), Pod("second", "node-2", volume))
	}

	It("goes to one of two nodes at once, and the other's pod gets one event", func() {
		w.disk("data")
		twoPods("data")
		w.settle()
		w.settle()

		Expect(w.attachmentsOf("node-1")).To(HaveLen(1))
		Expect(w.attachmentsOf("node-2")).To(BeEmpty())
		Expect(w.world.newEvents()).To(ContainElements(ContainSubstring(
			`Warning FailedAttachVolume Multi-Attach error for volume "data": it can be on one node at a time, and node node-1 has it for these pods: first.`)))
		w.settle()
		Expect(w.world.newEvents()).To(BeEmpty())
	})

	It("is one of several that wait: their pod gets one event for all of them", func() {
		for _, name := range []string{"a", "b", "c"} {
			w.disk(name)
		}
		w.create(Pod("first", "node-1", "a", "b", "c"), Pod("second", "node-2", "a", "b", "c"))
		w.settle()

		Expect(w.world.newEvents()).To(HaveExactElements(And(
			ContainSubstring(`Warning FailedAttachVolume Multi-Attach error for volume "a"`),
			HaveSuffix("This pod waits until they have ended (2 more of its volumes wait, too)"))))
	})

	It("counts once for a pod that names it twice", func() {
		w.disk("data")
		second := Pod("second", "node-2", "data", "data")
		second.Spec.Volumes[1].Name = "again"
		w.create(Pod("first", "node-1", "data"), second)
		w.settle()

		Expect(w.world.newEvents()).To(HaveExactElements(HaveSuffix("This pod waits until they have ended")))
	})

	It("goes to both, if it is for many", func() {
		w.disk("shared", WithModes(corev1.ReadWriteMany))
		twoPods("shared")

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(HaveLen(1))
		Expect(w.attachmentsOf("node-2")).To(HaveLen(1))
	})

	It("goes to one of them while the cache shows no attachments yet", func() {
		w.disk("data")
		twoPods("data")
		w.views.nodes.Client = nodeIndexes{unattached{w}}

		Expect(w.reconcile("node-1")).To(Succeed())
		Expect(w.reconcile("node-2")).To(Succeed())

		Expect(w.attachmentsOf("node-2")).To(BeEmpty())
	})

	It("goes to one of them while not even the API server shows them", func() {
		w.disk("data")
		twoPods("data")
		blind := nodeIndexes{unattached{w}}
		w.views.nodes.Client, w.views.nodes.live.Reader = blind, blind

		Expect(w.reconcile("node-1")).To(Succeed())
		Expect(w.reconcile("node-2")).To(Succeed())

		Expect(w.attachmentsOf("node-2")).To(BeEmpty())
	})

	It("goes to one of them when another manager with a cold cache takes over", func() {
		w.disk("data")
		twoPods("data")
		Expect(w.reconcile("node-1")).To(Succeed())
		other := w.anotherThatSees(nodeIndexes{unattached{w}})

		_, err := other.Reconcile(context.Background(), wake.RequestNamed("node-2"))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.attachmentsOf("node-2")).To(BeEmpty())
	})

	It("stays on the node that got it first from two leaders", func() {
		w.delete(managedNode("node-1"))
		_, pv, node := cloudedIn(w.world)
		update(w.world, node, func(node *corev1.Node) { node.Annotations = managedNode("node-1").Annotations })
		twoPods("data")
		first, second := attachmentTo("node-1", pv), attachmentTo("node-2", pv)
		w.create(first)
		// The API server's clock counts seconds.
		Eventually(time.Now).WithTimeout(10 * time.Second).
			Should(BeTemporally(">", first.CreationTimestamp.Add(time.Second)))
		w.create(second)

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Status.Attached", BeTrue())))
		Expect(w.attachmentsOf("node-2")).To(BeEmpty())
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
	})

	It("moves with its pod once the node has released it, and the pod gets one event", func() {
		w.delete(managedNode("node-1"))
		node, pod, name := w.running("data")
		w.create(Pod("moved", "node-2", "data"))
		w.settle()
		w.delete(pod)
		w.settle()
		Expect(w.attachmentsOf("node-2")).To(BeEmpty())

		w.uses(node)
		w.settle()

		Expect(w.volumesAttached(node)).To(BeEmpty())
		Expect(w.volumesAttached(managedNode("node-2"))).To(HaveExactElements(string(name)))
		Expect(w.world.newEvents()).To(HaveExactElements(ContainSubstring("Multi-Attach error")))
	})

	It("does not go to a second node while it is in volumesAttached of the first, with or without attachment", func() {
		w.delete(managedNode("node-1"))
		node, _, _ := w.running("data")
		w.delete(w.attachmentsOf("node-1")[0])
		w.create(Pod("second", "node-2", "data"))

		Expect(w.reconcile("node-2")).To(Succeed())
		Expect(w.attachmentsOf("node-2")).To(BeEmpty())
		w.settle()

		Expect(w.attachmentsOf("node-1")).To(HaveLen(1), "it was created again")
		Expect(w.volumesAttached(node)).To(HaveLen(1))
	})

	It("is one also where two volume objects stand for it", func() {
		w.disk("data")
		w.disk("twin", func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "handle-of-data" })
		w.create(Pod("first", "node-1", "data"), Pod("second", "node-2", "twin"))

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(HaveLen(1))
		Expect(w.attachmentsOf("node-2")).To(BeEmpty())
	})

	It("is one also where nodes log in to it by themselves", func() {
		w.disk("lun", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
				ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2026-01.com.example:disk", Lun: 1},
			}
		})
		twoPods("lun")

		w.settle()

		Expect(w.volumesAttached(managedNode("node-1"))).To(HaveLen(1))
		Expect(w.volumesAttached(managedNode("node-2"))).To(BeEmpty())
	})
})

// unattached shows no attachments, neither in lists nor by their names.
type unattached struct{ client.Client }

func (c unattached) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, is := object.(*storagev1.VolumeAttachment); is {
		return apierrors.NewNotFound(storagev1.Resource("volumeattachments"), key.Name)
	}
	return c.Client.Get(ctx, key, object, options...)
}

func (c unattached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return withoutAttachments(c).List(ctx, list, options...)
}
