package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
	"github.com/stowage-dev/stowage/internal/wake"
)

// slowly has each detach take longer than a reconcile waits, until release is called.
func slowly(w *world) (release func()) {
	GinkgoHelper()
	w.dispatch()
	return w.storage.HoldOnly("Detach")
}

// eventuallyDetached runs rounds until the answers of the cloud are there.
func eventuallyDetached(w *world, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		_ = w.round()
		g.Expect(w.gone(attachment)).To(BeTrue())
	}).Should(Succeed())
	Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(BeEmpty())
}

var _ = Describe("An attach that takes the cloud its time", func() {
	It("is recorded by its answer, without another call, and without a list of all attachments", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		w.create(attachment)
		w.views.attachments.live.Reader = unlistable{w.reads}
		w.dispatch()
		release := w.storage.HoldOnly("Attach")
		w.attachOnce(attachment)
		w.attachOnce(attachment)
		release()

		Eventually(func(g Gomega) {
			w.attachOnce(attachment)
			w.get(attachment)
			g.Expect(attachment.Status.Attached).To(BeTrue())
		}).Should(Succeed())

		expectAttached(w, attachment, pv, node)
		Expect(w.storage.Calls()).To(HaveExactElements(HavePrefix("Provision"), HavePrefix("Attach")))
	})
})

var _ = Describe("A detach that takes the cloud its time", func() {
	It("ends though a pod came back in between to a node that has just become Ready: its answer comes before a new decision", func() {
		w, attachment, pv := attached()
		node := firstNode(w)
		updateNode(w, node, readyFor(30*time.Second))
		w.delete(attachment)
		release := slowly(w)
		_ = w.round()
		updateNode(w, node, using(pv))
		release()

		eventuallyDetached(w, attachment, pv)
		Expect(w.storage.Calls()).NotTo(ContainElement(HavePrefix("IsAttached")), "the answer was enough")
		Expect(w.newEvents()).NotTo(ContainElement(ContainSubstring("FailedDetachVolume")))
	})

	It("ends though its node, which it was forced from by the taint, became Ready in between: Never, and the node lists the volume", func() {
		w, attachment, pv := attached(forcing("Never"))
		node := firstNode(w)
		updateNode(w, node, together(using(pv), silentFor(w, time.Hour), outOfService))
		w.delete(attachment)
		forced := countsForced(w)
		release := slowly(w)
		Eventually(func() []string { _ = w.roundOfAttachments(); return w.storage.Calls() }).Should(ContainElement(HavePrefix("Detach")))
		_ = w.roundOfAttachments()
		updateNode(w, node, together(func(node *corev1.Node) { node.Spec.Taints = nil }, using(pv), readyFor(0), becomesReady))
		release()

		eventuallyDetached(w, attachment, pv)
		Expect(w.newEvents()).To(HaveExactElements(forcedFromNode1, forcedFromNode1), "of the attachment and of the volume, once")
		Expect(forced()).To(BeEquivalentTo(1))
	})

	It("keeps a volume after a failed detach, with the reason", func() {
		w, attachment, pv := attached()
		w.delete(attachment)
		release := slowly(w)
		w.storage.FailNext(backend.Unavailable.Errorf("the zone is out of order"))
		_ = w.round()
		updateNode(w, firstNode(w), using(pv))
		release()

		Eventually(func(g Gomega) {
			_ = w.round()
			w.get(attachment)
			g.Expect(attachment.Status.DetachError).To(HaveValue(HaveField("Message", ContainSubstring("the zone is out of order"))))
		}).Should(Succeed())
		Expect(w.storage.AttachedTo(pv.Spec.CSI.VolumeHandle)).To(HaveLen(1))
	})
})

var _ = Describe("An attachment with a detach that is refused", func() {
	DescribeTable("goes where the backend says that nothing is attached",
		func(given func(*world, *storagev1.VolumeAttachment, *corev1.PersistentVolume)) {
			w, attachment, pv := attached(forcing("Never"))
			given(w, attachment, pv)
			w.storage.DetachBehind(pv.Name)
			w.delete(attachment)

			w.settleBy(w.roundOfAttachments)

			expectDetached(w, attachment, pv)
			Expect(w.newEvents()).NotTo(ContainElement(ContainSubstring("FailedDetachVolume")))
			Expect(w.storage.Calls()).NotTo(ContainElement(HavePrefix("Detach")))
		},
		Entry("and its node is Ready and lists the volume", func(w *world, _ *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) {
			updateNode(w, firstNode(w), using(pv))
		}),
		Entry("and its node is silent, and the policy is Never", func(w *world, _ *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) {
			updateNode(w, firstNode(w), together(using(pv), silentFor(w, time.Hour)))
		}),
		Entry("and its Node object is gone, while the machine runs", func(w *world, _ *storagev1.VolumeAttachment, _ *corev1.PersistentVolume) {
			w.delete(firstNode(w))
		}),
		Entry("and its machine has another node's name", func(w *world, _ *storagev1.VolumeAttachment, _ *corev1.PersistentVolume) {
			renamed := firstNode(w)
			w.delete(renamed)
			again := machine("node-2")
			again.Spec.ProviderID = renamed.Spec.ProviderID
			w.create(again)
		}),
		Entry("and its machine is unknown", func(w *world, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) {
			w.delete(firstNode(w))
			anonymous := machine("node-1")
			anonymous.Spec.ProviderID = ""
			w.create(anonymous)
			updateNode(w, anonymous, using(pv))
			update(w, attachment, func(attachment *storagev1.VolumeAttachment) {
				attachment.Annotations[stowagev1alpha1.AttachmentAnnotation] = `{"backend":"cloud","volume":"` + pv.Name + `"}`
			})
			attachment.Status.AttachmentMetadata = nil
			Expect(w.direct.Status().Update(GinkgoT().Context(), attachment)).To(Succeed())
		}),
	)

	It("stays if the backend cannot report whether anything is attached, with the reason of the refusal", func() {
		w, attachment, pv := attached(forcing("Never"))
		w.delete(firstNode(w))
		w.delete(attachment)
		w.storage.FailNext(backend.Unavailable.Errorf("503"))

		_ = w.roundOfAttachments()

		expectStays(w, attachment, pv, "there is no Node object")
	})

	It("stays, and says nothing yet, while an attach may be under way", func() {
		w, attachment, pv := attached(forcing("Never"))
		w.delete(firstNode(w))
		w.storage.DetachBehind(pv.Name)
		w.delete(attachment)
		w.storage.FailNext(backend.InProgress.Errorf("operation attach-1"))

		_ = w.roundOfAttachments()

		Expect(w.gone(attachment)).To(BeFalse())
		Expect(attachment.Status.DetachError).To(BeNil())
	})
})

var _ = Describe("A node that gets its provider's id late", func() {
	It("has it written on the attachment before anything is attached", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		attachment := attachmentTo(node.Name, pv)
		anonymous := node.DeepCopy()
		anonymous.Spec.ProviderID = ""
		attachintent.Prepare(attachment, pv, anonymous)
		w.create(attachment)

		w.settle()

		expectAttached(w, attachment, pv, node)
		Expect(attachment.Annotations[stowagev1alpha1.AttachmentAnnotation]).To(ContainSubstring(node.Spec.ProviderID))
	})
})

// becomesReady makes a node be Ready.
func becomesReady(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionTrue }

// roundOfAttachments runs the reconciler of attachments alone.
func (w *world) roundOfAttachments() error {
	for _, object := range w.all(&storagev1.VolumeAttachmentList{}) {
		if _, err := w.attachments.Reconcile(GinkgoT().Context(), wake.Request(object)); err != nil {
			return err
		}
	}
	return nil
}

var forcedFromNode1 = ContainSubstring("ForcedDetachVolume detaching it from node node-1, which has not released it")

// countsForced has what is taken by force counted.
func countsForced(w *world) (count func() float64) {
	GinkgoHelper()
	registry := prometheus.NewRegistry()
	metrics, err := metrics.New(registry)
	Expect(err).NotTo(HaveOccurred())
	w.served.Metrics = metrics
	return func() (sum float64) {
		families, err := registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			if family.GetName() == "stowage_backend_forced_detaches_total" {
				sum += family.GetMetric()[0].GetCounter().GetValue()
			}
		}
		return sum
	}
}
