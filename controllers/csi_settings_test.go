package controllers

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// A driver finds what an earlier call made only by a call with the same parameters.
var _ = Describe("A claim whose CSI driver was called, and whose answer is lost, with other parameters in the StorageBackend by now", func() {
	for name, change := range map[string]func(*stowagev1alpha1.CSIBackend){
		"parameters": func(csi *stowagev1alpha1.CSIBackend) {
			csi.Parameters = map[string]stowagev1alpha1.CSIParameter{"pool": "b"}
		},
		"fsType": func(csi *stowagev1alpha1.CSIBackend) { csi.FSType = "xfs" },
	} {
		It("waits until "+name+" are set back, and gets its volume", func() {
			w, claim := halfMadeByDriver()
			w.changeSettings(change)
			called := len(w.storage.Calls())

			w.settle()

			Expect(w.condition(claim).Message).To(ContainSubstring("set them back until the claim is done"))
			Expect(w.storage.Calls()[called:]).NotTo(ContainElement(HavePrefix("Provision")))

			w.changeSettings(setBack)
			w.settle()

			expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
			Expect(w.storage.Len()).To(Equal(1))
		})
	}

	It("isn't deleted without its storage", func() {
		w, claim := halfMadeByDriver()
		w.changeSettings(func(csi *stowagev1alpha1.CSIBackend) { csi.FSType = "xfs" })
		w.delete(claim)

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("set them back until the claim is done"))
		Expect(w.storage.Len()).To(Equal(1))

		w.changeSettings(setBack)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("waits though a call was refused before it reached the driver", func() {
		w, claim := halfMadeByDriver()
		w.storage.FailNext(backend.Invalid.Errorf("the certificate can't be read"))
		_ = w.round()
		w.changeSettings(func(csi *stowagev1alpha1.CSIBackend) { csi.FSType = "xfs" })

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("set them back until the claim is done"))
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("isn't deleted without the storage that its undo may have made with them", func() {
		w, claim := refusedByDriver()
		w.changeSettings(func(csi *stowagev1alpha1.CSIBackend) { csi.FSType = "xfs" })
		w.delete(claim)
		w.storage.FailNext(nil, errors.New("the answer is lost"))
		_ = w.round()
		Expect(w.storage.Len()).To(Equal(1))
		w.changeSettings(func(csi *stowagev1alpha1.CSIBackend) { csi.FSType = "ext4" })

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("set them back until the claim is done"))
		Expect(w.storage.Len()).To(Equal(1))

		w.changeSettings(func(csi *stowagev1alpha1.CSIBackend) { csi.FSType = "xfs" })
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("gets a volume with them once the driver has refused the call for good", func() {
		w, claim := refusedByDriver()
		w.changeSettings(func(csi *stowagev1alpha1.CSIBackend) {
			csi.Parameters = map[string]stowagev1alpha1.CSIParameter{"pool": "b"}
		})

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.storage.Len()).To(Equal(1))
	})
})

var _ = Describe("A claim that is a copy, by a CSI driver", func() {
	It("whose call an earlier version made has no record, and isn't taken for one without a call", func() {
		w := newCSIWorld(reconciler.ClusterScope)
		source, claim := Claim(InClass("kept")), copyOf("data", InClass("kept"))
		w.create(source)
		w.settle()
		w.create(claim)
		w.storage.FailNext(errors.New("the answer is lost"))
		_ = w.round()
		withoutRecord(w, claim)
		update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations[stowagev1alpha1.ProvisioningAnnotation] = `{"backend":"` + csiDriver + `","attempt":1}`
		})
		removeByForce(w, source)
		w.storage.FailNext(backend.Invalid.Errorf("the source is gone"))

		_ = w.round()

		operation, err := provisioned.IntentOf(w.read(claim))
		Expect(err).NotTo(HaveOccurred())
		Expect(operation.Records).To(BeFalse())
		Expect(provisioned.IsUncalledCopy(w.read(claim), operation)).To(BeFalse())
	})
})

// refusedByDriver is a cluster with a claim whose driver has answered that it makes no such volume.
func refusedByDriver() (*world, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w, claim := newCSIWorld(reconciler.ClusterScope), Claim(InClass("tiered"))
	w.storage.FailNext(backend.Refused(backend.Invalid.Errorf("there is no pool a")))
	w.create(claim)
	_ = w.round()
	Expect(w.condition(claim).Message).To(ContainSubstring("there is no pool a"))
	return w, claim
}

func setBack(csi *stowagev1alpha1.CSIBackend) { *csi = *csiBackend().Spec.CSI }

// changeSettings changes the spec of the driver's StorageBackend.
func (w *world) changeSettings(change func(*stowagev1alpha1.CSIBackend)) {
	GinkgoHelper()
	object := csiBackend()
	w.get(object)
	update(w, object, func(object *stowagev1alpha1.StorageBackend) { change(object.Spec.CSI) })
}
