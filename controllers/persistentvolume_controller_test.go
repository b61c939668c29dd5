package controllers

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	. "github.com/stowage-dev/stowage/test/fixture"
)

var _ = Describe("A static volume", func() {
	It("is Available while it is nobody's", func() {
		w := newWorld(ClusterScope)
		pv := Volume("v")
		w.create(pv)
		w.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)
	})

	It("is Released, with its claimRef, when its claim is deleted", func() {
		w := newWorld(ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()

		w.delete(claim)
		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
		Expect(pv.Spec.ClaimRef.UID).To(Equal(claim.UID))
	})

	It("is never given to a claim of the same name that comes later", func() {
		w := newWorld(ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()
		w.delete(claim)
		w.settle()

		second := Claim()
		w.create(second)
		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
		w.get(second)
		Expect(second.Spec.VolumeName).To(BeEmpty())
	})

	It("is not Released because the cache has not seen its claim", func() {
		w := newWorld(ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()

		w.volumes.client = withoutClaims{w}
		w.settle()

		expectPhase(w, pv, corev1.VolumeBound)
	})

	It("is protected from deletion while a claim is bound to it", func() {
		w := newWorld(ClusterScope)
		claim, pv := Claim(), Volume("v")
		w.create(claim, pv)
		w.settle()

		w.delete(pv)
		w.settle()
		expectPhase(w, pv, corev1.VolumeBound)

		w.delete(claim)
		w.settle()
		Expect(w.gone(pv)).To(BeTrue())
	})

	It("fails, and says what to do, when its policy asks for what nobody can do", func() {
		w := newWorld(ClusterScope)
		claim, pv := Claim(), Volume("v", Reclaimed(corev1.PersistentVolumeReclaimDelete))
		w.create(claim, pv)
		w.settle()

		w.delete(claim)
		w.settle()

		expectPhase(w, pv, corev1.VolumeFailed)
		Expect(w.told()).To(ContainElement(ContainSubstring("VolumeFailedDelete")))
	})
})

var _ = Describe("A volume that Stowage made", func() {
	It("goes with its claim, and so does its data", func() {
		w, claim, pv := provisioned()

		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("keeps its data when its policy was set to Retain, also when it is deleted itself", func() {
		w, claim, pv := provisioned()
		update(w, pv, retain)
		w.delete(claim)
		w.settle()
		expectPhase(w, pv, corev1.VolumeReleased)

		w.delete(pv)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("keeps its data when the policy is set to Retain after the point of no return", func() {
		w, claim, pv := provisioned()
		w.storage.FailNext(slices.Repeat([]error{backend.Unavailable.Errorf("the storage is away")}, maxRounds)...)
		w.delete(claim)
		w.settle()
		w.get(pv)
		Expect(pv.DeletionTimestamp).NotTo(BeNil())

		update(w, pv, retain)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("keeps its data for the undelete window, also when it is deleted itself", func() {
		w, claim, pv := provisioned(func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Deletion.RetainFor = metav1.Duration{Duration: time.Hour}
		})
		w.delete(claim)
		w.settle()
		expectPhase(w, pv, corev1.VolumeReleased)
		w.delete(pv)
		w.settle()
		Expect(w.storage.Len()).To(Equal(1))

		w.clock.SetTime(time.Now().Add(2 * time.Hour))
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("is given back, inside the undelete window, to the claim that a person names", func() {
		w, claim, pv := provisioned(func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Deletion.RetainFor = metav1.Duration{Duration: time.Hour}
		})
		w.delete(claim)
		w.settle()

		update(w, pv, func(pv *corev1.PersistentVolume) {
			retain(pv)
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: Namespace, Name: "restored"}
		})
		stranger, restored := Claim(ClaimNamed("stranger"), InClass("disks")), Claim(ClaimNamed("restored"), AskingFor(pv.Name))
		w.create(stranger)
		w.settle()
		w.create(restored)
		w.settle()

		expectBound(w, restored, pv)
		expectBound(w, stranger, Volume(volumeIDOf(stranger)))
		Expect(w.storage.Has(pv.Name)).To(BeTrue())
	})

	It("keeps its data while its claim lives, though the volume was deleted first", func() {
		w, claim, pv := provisioned()
		w.delete(pv)
		w.settle()
		Expect(w.storage.Len()).To(Equal(1))

		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("keeps its data while another volume object stands for it", func() {
		w, claim, pv := provisioned()
		twin := Volume("twin")
		twin.Spec.PersistentVolumeSource = pv.Spec.PersistentVolumeSource
		w.create(twin)

		w.delete(claim)
		w.settle()

		expectPhase(w, pv, corev1.VolumeReleased)
		Expect(w.storage.Len()).To(Equal(1))
		Expect(w.told()).To(ContainElement(ContainSubstring("volume twin stands for the same storage")))
	})

	It("can be deleted after its class is gone", func() {
		w, claim, pv := provisioned()
		update(w, LocalBackend("disks"), func(object *stowagev1alpha1.StorageBackend) { object.Spec.StorageClass = nil })

		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})
})

var _ = Describe("Reclaim that is interrupted", func() {
	const writes = 4
	for _, kind := range []fault{lost, unanswered} {
		for number := range writes {
			It("removes data and volume when write "+string(rune('1'+number))+" is "+string(kind), func() {
				w, claim, pv := provisioned()
				w.delete(claim)
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				w.restart()
				w.settle()

				Expect(w.gone(claim)).To(BeTrue())
				Expect(w.gone(pv)).To(BeTrue())
				Expect(w.storage.Len()).To(BeZero())
			})
		}
	}
})

// provisioned is a cluster with a claim and the volume that was made for it.
func provisioned(options ...func(*stowagev1alpha1.StorageBackend)) (*world, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	GinkgoHelper()
	w := newWorld(ClusterScope)
	claim := Claim(InClass("disks"))
	w.create(LocalBackend("disks", options...), claim)
	w.settle()
	pv := Volume(volumeIDOf(claim))
	expectBound(w, claim, pv)
	return w, claim, pv
}

func retain(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

func expectPhase(w *world, pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase) {
	GinkgoHelper()
	w.get(pv)
	Expect(pv.Status.Phase).To(Equal(phase))
}
