package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A StorageBackend of a CSI driver that is deleted", func() {
	It("leaves volumes and attachments to the driver's sidecars, as they are", func() {
		w, attachment, pv := attachedByDriver()
		calls := len(w.storage.Calls())
		w.delete(csiBackend())
		w.settle()

		Expect(w.gone(csiBackend())).To(BeTrue())
		w.get(pv)
		Expect(pv.DeletionTimestamp.IsZero()).To(BeTrue())
		Expect(pv.Finalizers).To(ConsistOf("external-provisioner.volume.kubernetes.io/finalizer", "external-attacher/disk-example-com",
			"kubernetes.io/pv-protection"))
		w.get(attachment)
		Expect(attachment.Status.Attached).To(BeTrue())
		Expect(attachment.Finalizers).To(ConsistOf("external-attacher/disk-example-com"))
		Expect(w.storage.Calls()).To(HaveLen(calls))

		By("a volume and an attachment that are deleted without it")
		w.delete(attachment)
		w.delete(Claim())
		w.settle()
		Expect(w.gone(attachment)).To(BeFalse())
		Expect(w.gone(pv)).To(BeFalse())
		Expect(w.storage.Calls()).To(HaveLen(calls))
	})

	It("serves again what it left, once it is created again", func() {
		w, claim, pv := madeByDriver()
		w.delete(csiBackend())
		w.settle()
		w.delete(claim)
		w.settle()

		w.create(csiBackend())
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("leaves no finalizer on the classes of its driver", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		claim := Claim(InClass("tiered"))
		w.create(claim)
		w.settle()
		Expect(hasProvisioningFinalizer(w, tiered())).To(BeTrue())
		w.delete(csiBackend())
		w.settle()

		Expect(w.gone(csiBackend())).To(BeTrue())
		Expect(hasProvisioningFinalizer(w, tiered())).To(BeFalse())
	})

	It("finishes what it began for a claim", func() {
		w, claim := halfMadeByDriver()
		w.delete(csiBackend())
		w.restart()
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.storage.Len()).To(Equal(1))
		Expect(w.gone(csiBackend())).To(BeTrue())
	})

	It("begins nothing for a claim, and ends what its cache made it begin", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		object := csiBackend()
		update(w, object, func(object *stowagev1alpha1.StorageBackend) {
			object.Finalizers = append(object.Finalizers, "example.com/kept")
		})
		w.views.claims.Client = stale{w, []client.Object{object}}
		w.delete(csiBackend())
		claim := Claim(InClass("tiered"))
		w.create(claim)
		_ = w.round()

		Expect(w.storage.Calls()).To(BeEmpty())
		Expect(w.read(claim).Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
	})

	It("waits for the undelete window of a volume, which the sidecars don't have", func() {
		w, claim, pv := madeByDriver()
		update(w, csiBackend(), func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Deletion.RetainFor = metav1.Duration{Duration: time.Hour}
		})
		w.delete(claim)
		w.settle()
		object := csiBackend()
		w.delete(object)
		w.settle()
		expectNotReady(w, object, stowagev1alpha1.ReasonInUse, "waits for volume "+pv.Name+", which external-provisioner would remove at once")
		expectPhase(w, pv, corev1.VolumeReleased)

		w.passTime(2 * time.Hour)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.gone(object)).To(BeTrue())
	})
})
