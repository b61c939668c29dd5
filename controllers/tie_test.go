package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume that a person reserves by name", func() {
	It("is Available until its claim is created, and then bound to it", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", ReservedTo("data"))
		w.create(pv, Volume("smaller-name"))
		w.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)

		w.create(claim)
		w.settle()

		expectBound(w, claim, pv)
		Expect(pv.Annotations).NotTo(HaveKey(volume.AnnBoundByController))
	})

	It("is bound to a claim that exists", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", ReservedTo("data"))
		w.create(claim)
		w.settle()

		w.create(pv)
		w.settle()

		expectBound(w, claim, pv)
	})

	It("is reported with its claim when it does not fit, and another is bound", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(Asking("5Gi"))
		w.create(Volume("small", ReservedTo("data")), Volume("right", Holding("5Gi")), claim)

		w.settle()

		expectBound(w, claim, Volume("right"))
		Expect(eventsWith(w.newEvents(), "VolumeMismatch")).To(ConsistOf(
			ContainSubstring("volume small is reserved for this claim, and does not fit: too small"),
			ContainSubstring("claim default/data, for which the volume is reserved, can't have it: too small"),
		))
	})
})

var _ = Describe("A volume that names its claim with the UID", func() {
	It("is bound to that claim", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		w.create(claim)
		pv := Volume("v", tiedTo(claim))
		w.create(pv)

		w.settle()

		expectBound(w, claim, pv)
	})

	It("is Released when there is no such claim", func() {
		w := newWorld(reconciler.ClusterScope)
		pv := Volume("v", tiedTo(Claim(ClaimUID("gone"))))
		w.create(pv)

		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
	})

	It("is Released when the claim was made again, which doesn't get it", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", tiedTo(Claim(ClaimUID("earlier"))))
		w.create(pv, claim)

		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
		Expect(w.condition(claim).Reason).To(Equal("NoMatchingVolume"))
	})
})

var _ = Describe("A volume whose claimRef a person changes", func() {
	It("is Available again when it was Released and the reference is removed", func() {
		w, pv := released()

		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
		w.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
	})

	It("waits for a claim of the same name when it was Released and only the UID is removed", func() {
		w, pv := released()

		update(w, pv, withoutUID)
		w.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)
		again, stranger := Claim(), Claim(ClaimNamed("a-stranger"))
		w.create(stranger, again)
		w.settle()

		expectBound(w, again, pv)
		Expect(w.condition(stranger).Reason).To(Equal("NoMatchingVolume"))
	})

	DescribeTable("is tied again to the claim that is bound to it",
		func(change func(*corev1.PersistentVolume)) {
			w := newWorld(reconciler.ClusterScope)
			claim, pv := Claim(), Volume("v")
			w.create(claim, pv)
			w.settle()

			update(w, pv, change)
			w.settle()

			expectBound(w, claim, pv)
		},
		Entry("when the reference is removed", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }),
		Entry("when only the UID is removed", withoutUID),
	)
})

var _ = Describe("A volume that is tied to a claim which took another", func() {
	It("is free when Stowage chose the claim", func() {
		w, claim := boundTo("taken")
		pv := Volume("v", tiedTo(claim), byController)
		w.create(pv)

		w.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(pv.Spec.ClaimRef).To(BeNil())
		Expect(pv.Annotations).NotTo(HaveKey(volume.AnnBoundByController))
	})

	It("stays reserved by name when a person chose the claim", func() {
		w, claim := boundTo("taken")
		pv := Volume("v", tiedTo(claim))
		w.create(pv)

		w.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(pv.Spec.ClaimRef.Name).To(Equal("data"))
		Expect(pv.Spec.ClaimRef.UID).To(BeEmpty())
	})

	It("is Released, to be reclaimed by its provisioner, when it was made for that claim", func() {
		w, claim := boundTo("taken")
		pv := Volume(provisioned.VolumeID(claim), tiedTo(claim), madeBy("disks.example.com"), Reclaimed(corev1.PersistentVolumeReclaimDelete))
		w.create(pv)

		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
	})

	It("is Released, too, when another provisioner made it for that claim, whatever its name", func() {
		w, claim := boundTo("taken")
		pv := Volume("prefix-7", tiedTo(claim), madeBy("disks.example.com"), Reclaimed(corev1.PersistentVolumeReclaimDelete))
		w.create(pv)

		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
	})
})

var _ = Describe("A volume that a controller tied to a claim, and that does not fit it", func() {
	DescribeTable("is not bound, and both get one event",
		func(cause string, change func(*corev1.PersistentVolume)) {
			w := newWorld(reconciler.ClusterScope)
			claim := Claim(Asking("2Gi"))
			w.create(claim)
			pv := Volume("v", Holding("2Gi"), tiedTo(claim), byController, change)
			w.create(pv)

			w.settle()
			w.settle()

			w.get(claim)
			w.get(pv)
			Expect(claim.Spec.VolumeName).To(BeEmpty())
			Expect(claim.Status.Phase).To(Equal(corev1.ClaimPending))
			Expect(pv.Spec.ClaimRef.UID).To(Equal(claim.UID))
			Expect(eventsWith(w.newEvents(), "Warning VolumeMismatch")).To(ConsistOf(
				ContainSubstring("volume v is reserved for this claim, and does not fit: "+cause),
				ContainSubstring("claim default/data, for which the volume is reserved, can't have it: "+cause)))
		},
		Entry("for its volumeMode", "other volumeMode", func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }),
		Entry("for its size", "too small", Holding("1Gi")),
		Entry("for its access modes", "other access modes", WithModes(corev1.ReadOnlyMany)),
	)
})

var _ = Describe("A claim that is bound", func() {
	It("is bound like a new one when it was copied without its volume", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
		w.create(Volume("v"), claim)

		w.settle()

		expectBound(w, claim, Volume("v"))
	})

	It("is Bound again when the volume that it lost comes back", func() {
		w, claim := boundTo("v")
		pv := Volume("v")
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		w.delete(pv)
		w.settle()
		w.get(claim)
		Expect(claim.Status.Phase).To(Equal(corev1.ClaimLost))

		w.create(Volume("v"))
		w.settle()

		expectBound(w, claim, Volume("v"))
	})

	It("is Lost, and says so once, when its volume is tied to another claim", func() {
		w, claim := boundTo("v")
		other := Claim(ClaimNamed("other"))
		w.create(other)
		w.newEvents()

		update(w, Volume("v"), tiedTo(other))
		w.settle()

		w.get(claim)
		Expect(claim.Status.Phase).To(Equal(corev1.ClaimLost))
		Expect(eventsWith(w.newEvents(), "ClaimMisbound")).To(HaveLen(1))
	})

	It("reports what it got: capacity, access modes and VolumeAttributesClass", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(ofAttributes("gold"))
		w.create(Volume("v", attributed, Holding("5Gi"), WithModes(corev1.ReadWriteOnce, corev1.ReadWriteMany)), claim)

		w.settle()

		w.get(claim)
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("5Gi"))
		Expect(claim.Status.AccessModes).To(ConsistOf(corev1.ReadWriteOnce, corev1.ReadWriteMany))
		Expect(claim.Status.CurrentVolumeAttributesClassName).To(HaveValue(Equal("gold")))
	})
})

var _ = Describe("A claim that the cache still shows after it is gone", func() {
	It("is no error when it has yet to be protected", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		w.create(claim)
		shown := claim.DeepCopy()
		shown.Finalizers = nil
		w.delete(claim)
		w.settle()
		Expect(w.gone(claim)).To(BeTrue())

		w.views.claims.Client = stale{w, []client.Object{shown}}
		_, err := w.claims.Reconcile(GinkgoT().Context(), wake.Request(shown))

		Expect(err).NotTo(HaveOccurred())
	})
})

// boundTo is a world with a claim that is bound to a volume of this name.
func boundTo(name string) (*world, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w, claim := newWorld(reconciler.ClusterScope), Claim()
	w.create(Volume(name), claim)
	w.settle()
	expectBound(w, claim, Volume(name))
	return w, claim
}

// released is a world with a volume whose claim is gone.
func released() (*world, *corev1.PersistentVolume) {
	GinkgoHelper()
	w, claim := boundTo("v")
	w.delete(claim)
	w.settle()
	pv := Volume("v")
	expectPhase(w, pv, corev1.VolumeReleased)
	return w, pv
}

// tiedTo names a claim in a volume's claimRef, with its UID.
func tiedTo(claim *corev1.PersistentVolumeClaim) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	}
}

func withoutUID(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }

func byController(pv *corev1.PersistentVolume) {
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volume.AnnBoundByController, "yes")
}

func madeBy(driver string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volume.AnnDynamicallyProvisioned, driver)
	}
}
