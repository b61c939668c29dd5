package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume of a CSI driver with a StorageBackend", func() {
	It("goes with its claim, and so does its data, by its handle", func() {
		w, claim, pv := madeByDriver()

		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("Normal VolumeDeleted")))
	})

	It("is removed by one call, though another program writes to the volume at the same time", func() {
		const writes = 4
		for number := range writes {
			w, claim, pv := madeByDriver()
			w.delete(claim)
			w.faults = map[int]fault{w.written + number: contended}
			w.settle()

			Expect(w.gone(pv)).To(BeTrue())
			Expect(w.storage.Calls()).To(HaveExactElements("Provision "+pv.Name, "Delete "+pv.Name))
			w.empty()
		}
	})

	It("stays for the undelete window of its backend", func() {
		w, claim, pv := madeByDriver()
		update(w, csiBackend(), func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Deletion.RetainFor = metav1.Duration{Duration: time.Hour}
		})
		w.delete(claim)
		w.settle()
		expectPhase(w, pv, corev1.VolumeReleased)
		Expect(w.storage.Len()).To(Equal(1))

		w.passTime(2 * time.Hour)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("keeps its data where its policy is Retain", func() {
		w, claim, pv := madeByDriver()
		update(w, pv, retain)
		w.delete(claim)
		w.settle()
		w.delete(pv)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("keeps its data where a person made it, whatever its policy says", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", ofDriver(csiDriver), Reclaimed(corev1.PersistentVolumeReclaimDelete))
		w.create(claim, pv)
		w.settle()
		expectBound(w, claim, pv)
		w.delete(claim)
		w.settle()

		expectPhase(w, pv, corev1.VolumeFailed)
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("remove its data by hand")))
		Expect(w.storage.Calls()).To(BeEmpty())
	})

	It("keeps its data where a person made it, and gave it Stowage's finalizer", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", ofDriver(csiDriver), Reclaimed(corev1.PersistentVolumeReclaimDelete))
		pv.Finalizers = []string{stowagev1alpha1.ReclaimFinalizer}
		w.create(claim, pv)
		w.settle()
		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeFalse())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("storage that people made is never removed")))
		Expect(w.storage.Calls()).To(BeEmpty())
	})

	It("that external-provisioner made before is removed with its claim", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", ofDriver(csiDriver), madeBy(csiDriver), Reclaimed(corev1.PersistentVolumeReclaimDelete))
		pv.Spec.CSI.VolumeHandle = "projects/demo/zones/a/disks/v"
		w.create(claim, pv)
		w.settle()
		Expect(pv.Finalizers).NotTo(ContainElement(stowagev1alpha1.ReclaimFinalizer))
		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Calls()).To(ContainElement("Delete v"))
	})

	It("is left to its driver's sidecars where there is no StorageBackend", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", ofDriver(csiDriver), madeBy(csiDriver), Reclaimed(corev1.PersistentVolumeReclaimDelete))
		pv.Finalizers = []string{volume.PVDeletionProtectionFinalizer, "external-attacher/disk-example-com"}
		w.create(claim, pv)
		w.settle()
		w.delete(claim)
		w.settle()
		expectPhase(w, pv, corev1.VolumeReleased)
		w.delete(pv)
		w.settle()

		w.get(pv)
		Expect(pv.Finalizers).To(ConsistOf(volume.PVDeletionProtectionFinalizer, "external-attacher/disk-example-com"))
		Expect(w.storage.Calls()).To(BeEmpty())
	})

	It("grows with its claim", func() {
		w, claim, pv := madeByDriver()
		w.requestSize(claim, "2Gi")

		capacity := w.storage.Capacity(pv.Name)
		Expect(capacity.String()).To(Equal("2Gi"))
		Expect(w.volumeOf(claim).Spec.Capacity.Storage().String()).To(Equal("2Gi"))
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("2Gi"))
	})

	It("counts for its backend", func() {
		w, _, _ := madeByDriver()
		object := csiBackend()
		w.settle()
		w.get(object)
		Expect(object.Status.Volumes).To(HaveValue(BeEquivalentTo(1)))
	})
})
