package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A node", func() {
	var w *nodeWorld
	var node *corev1.Node
	BeforeEach(func() { w, node = newNodeWorld(), managedNode("node-1") })

	It("gets the volume of its pod, and it is marked once it is attached", func() {
		name := w.disk("data")
		w.create(node, Pod("user", "node-1", "data"))

		Expect(w.reconcile("node-1")).To(Succeed())
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(And(
			HaveField("Name", volume.AttachmentName(foreignDriver, "handle-of-data", "node-1")),
			HaveField("Spec.Attacher", foreignDriver),
			HaveField("Spec.Source.PersistentVolumeName", HaveValue(Equal("data"))),
			HaveField("Finalizers", BeEmpty()),
		)))
		Expect(w.volumesAttached(node)).To(BeEmpty())

		w.settle()
		Expect(w.volumesAttached(node)).To(HaveExactElements(string(name)))
	})

	It("gets a disk of ours with three writes, the attachment's finalizer among the first", func() {
		_, pv, _ := cloudedIn(w.world)
		update(w.world, node, func(node *corev1.Node) { node.Annotations = map[string]string{attach.ManagedAnnotation: "true"} })
		update(w.world, pv, func(pv *corev1.PersistentVolume) {
			pv.Finalizers = append(pv.Finalizers, attachintent.Finalizer(pv.Spec.CSI.Driver))
		})
		w.create(Pod("user", "node-1", "data"))
		before := w.written

		Expect(w.reconcile("node-1")).To(Succeed())
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Finalizers", HaveExactElements(attachintent.Finalizer(pv.Spec.CSI.Driver)))))
		w.settle()

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(Equal([]string{node.Spec.ProviderID}))
		Expect(w.volumesAttached(node)).To(HaveLen(1))
		claimStatus := 1 // that a pod uses the claim now
		Expect(w.written - before - claimStatus).To(Equal(3))
	})

	It("releases a disk of ours with three writes", func() {
		_, pv, _ := cloudedIn(w.world)
		update(w.world, node, func(node *corev1.Node) { node.Annotations = map[string]string{attach.ManagedAnnotation: "true"} })
		pod := Pod("user", "node-1", "data")
		w.create(pod)
		w.settle()
		w.delete(pod)
		before := w.written

		w.settle()

		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
		Expect(w.volumesAttached(node)).To(BeEmpty())
		claimStatus := 1 // that no pod uses the claim any more
		Expect(w.written - before - claimStatus).To(Equal(3))
	})

	It("gets many volumes in volumesAttached in one write", func() {
		pod := Pod("user", "node-1", "a", "b", "c")
		for _, name := range []string{"a", "b", "c"} {
			w.disk(name)
		}
		w.create(node, pod)
		Expect(w.reconcile("node-1")).To(Succeed())
		w.attachForeign()
		before := w.written

		Expect(w.reconcile("node-1")).To(Succeed())

		Expect(w.volumesAttached(node)).To(HaveLen(3))
		Expect(w.written - before).To(Equal(1))
	})

	It("costs no write where nothing changed", func() {
		w.running("data")
		before := w.written

		Expect(w.reconcile("node-1")).To(Succeed())

		Expect(w.written).To(Equal(before))
	})

	It("keeps what it uses, and loses it once it says that it doesn't", func() {
		node, pod, name := w.running("data")
		w.delete(pod)
		w.settle()
		Expect(w.volumesAttached(node)).To(HaveExactElements(string(name)))
		Expect(w.attachmentsOf("node-1")).To(HaveLen(1))

		w.uses(node)
		w.settle()

		Expect(w.volumesAttached(node)).To(BeEmpty())
		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
	})

	It("keeps the entries of other components", func() {
		w.create(node)
		w.updateStatus(node, func(status *corev1.NodeStatus) {
			status.VolumesAttached = []corev1.AttachedVolume{{Name: "example.com/else/what", DevicePath: "/dev/x"}}
		})
		name := w.disk("data")
		w.create(Pod("user", "node-1", "data"))
		w.settle()

		Expect(w.volumesAttached(node)).To(HaveExactElements("example.com/else/what", string(name)))
		Expect(node.Status.VolumesAttached[0].DevicePath).To(Equal("/dev/x"))
	})

	It("that sees to itself is left alone", func() {
		node.Annotations = nil
		w.disk("data")
		w.create(node, Pod("user", "node-1", "data"))
		foreign := w.byHand("node-1", "other")

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Name", foreign.GetName())))
	})

	It("gets nothing for volumes of drivers that attach nothing", func() {
		driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: foreignDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}
		w.create(driver)
		DeferCleanup(func() { _ = w.direct.Delete(context.Background(), driver) })
		w.disk("data")
		w.create(node, Pod("user", "node-1", "data"))

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
	})

	It("gets nothing for a claim that isn't bound, and none of another's", func() {
		stranger := Claim(ClaimNamed("user-scratch"))
		pod := Pod("user", "node-1", "unbound")
		pod.Spec.Volumes = append(pod.Spec.Volumes, scratchPod().Spec.Volumes[0])
		w.create(node, Claim(ClaimNamed("unbound")), stranger, pod)
		w.disk("other")

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
	})

	It("takes over what an earlier controller left, and removes what no pod wants", func() {
		desired := w.disk("desired")
		w.disk("left")
		w.create(node, w.attachment("node-1", "desired"), w.attachment("node-1", "left"), Pod("user", "node-1", "desired"))

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("Spec.Source.PersistentVolumeName", HaveValue(Equal("desired")))))
		Expect(w.volumesAttached(node)).To(HaveExactElements(string(desired)))
	})

	It("loses what is left of a volume object that is gone", func() {
		w.create(node, w.attachment("node-1", "gone"))

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
	})

	It("keeps an attachment that was created by hand", func() {
		w.disk("data")
		w.create(node)
		foreign := w.byHand("node-1", "data")

		w.settle()

		Expect(w.gone(foreign)).To(BeFalse())
	})

	It("gets back what a pod wants that returned while the volume left", func() {
		node, pod, name := w.running("data")
		slow := w.attachmentsOf("node-1")[0]
		update(w.world, slow, func(object *storagev1.VolumeAttachment) { object.Finalizers = []string{"example.com/slow"} })
		w.delete(pod)
		w.uses(node)
		w.settle()
		Expect(w.volumesAttached(node)).To(BeEmpty())

		w.create(Pod("user", "node-1", "data"))
		w.settle()
		Expect(w.volumesAttached(node)).To(BeEmpty(), "it is being detached")
		update(w.world, slow, func(object *storagev1.VolumeAttachment) { object.Finalizers = nil })
		w.settle()

		Expect(w.volumesAttached(node)).To(HaveExactElements(string(name)))
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("UID", Not(Equal(slow.UID)))))
	})

	It("gets an inline disk under the driver that it was handed to", func() {
		pod := Pod("user", "node-1")
		pod.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
			GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"},
		}}}
		w.create(node, pod)

		w.settle()

		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(And(
			HaveField("Spec.Attacher", "pd.csi.storage.gke.io"), HaveField("Spec.Source.InlineVolumeSpec.CSI.VolumeHandle", ContainSubstring("/disk")),
		)))
		w.delete(pod)
		w.settle()
		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
	})

	It("has a volume that it logs in to by itself only in volumesAttached", func() {
		pod := Pod("user", "node-1")
		pod.Spec.Volumes = []corev1.Volume{{Name: "lun", VolumeSource: corev1.VolumeSource{
			ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2026-01.com.example:disk", Lun: 1},
		}}}
		w.create(node, pod)

		w.settle()

		Expect(w.volumesAttached(node)).To(HaveExactElements("kubernetes.io/iscsi/10.0.0.1:3260:iqn.2026-01.com.example:disk:1"))
		Expect(w.attachmentsOf("node-1")).To(BeEmpty())
		w.delete(pod)
		w.settle()
		Expect(w.volumesAttached(node)).To(BeEmpty())
	})
})

// attachment is one that another controller of nodes left, of a volume of its name.
func (w *nodeWorld) attachment(node, of string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume.AttachmentName(foreignDriver, "handle-of-"+of, node)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: foreignDriver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &of},
		},
	}
}

// byHand makes an attachment of a name that no kubelet waits for.
func (w *nodeWorld) byHand(node, volume string) client.Object {
	GinkgoHelper()
	object := w.attachment(node, volume)
	object.Name = "by-hand"
	w.create(object)
	return object
}
