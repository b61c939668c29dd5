package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/uses"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume of policy Delete that Stowage did not make, whose claim is gone", func() {
	DescribeTable("stays Released where another program deletes it",
		func(options ...func(*corev1.PersistentVolume)) {
			w, pv := releasedWith(options...)

			expectPhase(w, pv, corev1.VolumeReleased)
			Expect(eventsWith(w.newEvents(), "VolumeFailedDelete")).To(BeEmpty())
		},
		Entry("a static volume of a CSI driver", ofDriver("disks.example.com")),
		Entry("a volume that an external provisioner made", madeBy("example.com/nfs")),
		Entry("a volume whose in-tree provisioner is a CSI driver now", gcePD, madeBy("kubernetes.io/gce-pd")),
	)

	DescribeTable("is Failed, and says what to do, where nothing deletes it",
		func(options ...func(*corev1.PersistentVolume)) {
			w, pv := releasedWith(options...)

			expectPhase(w, pv, corev1.VolumeFailed)
			Expect(eventsWith(w.newEvents(), "VolumeFailedDelete")).To(ConsistOf(ContainSubstring("remove its data by hand")))
		},
		Entry("a static volume of a driver of Stowage", ofDriver(stowagev1alpha1.NFSDriver)),
		Entry("a static volume of an in-tree type", gcePD),
		Entry("a volume whose in-tree provisioner is gone", madeBy("kubernetes.io/rbd")),
	)
})

var _ = Describe("The finalizer kubernetes.io/pv-controller", func() {
	It("ends on a volume that a CSI driver deletes now", func() {
		w := newWorld(reconciler.ClusterScope)
		pv := Volume("v", gcePD, madeBy("kubernetes.io/gce-pd"), held)
		w.create(pv)

		w.settle()

		w.get(pv)
		Expect(pv.Annotations).To(HaveKeyWithValue(volume.AnnMigratedTo, "pd.csi.storage.gke.io"))
		Expect(pv.Finalizers).To(ConsistOf(uses.VolumeProtection, volume.PVDeletionProtectionFinalizer))
	})

	It("ends on a volume of policy Retain whose in-tree provisioner is gone", func() {
		w := newWorld(reconciler.ClusterScope)
		pv := Volume("v", madeBy("kubernetes.io/rbd"), held)
		w.create(pv)

		w.settle()

		w.get(pv)
		Expect(pv.Finalizers).To(ConsistOf(uses.VolumeProtection))
	})

	It("ends with the volume, once that is deleted and no claim is bound to it", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v", Reclaimed(corev1.PersistentVolumeReclaimDelete), held)
		pv.Finalizers = []string{volume.PVDeletionInTreeProtectionFinalizer}
		w.create(pv, claim)
		w.settle()

		w.delete(pv)
		w.settle()
		expectBound(w, claim, pv)
		w.newEvents()
		w.delete(claim)
		w.settle()

		Expect(w.gone(pv)).To(BeTrue())
		Expect(eventsWith(w.newEvents(), "VolumeFailedDelete")).To(ConsistOf(ContainSubstring("its storage is still there")))
	})
})

// releasedWith is a world with a volume of policy Delete whose claim is gone.
func releasedWith(options ...func(*corev1.PersistentVolume)) (*world, *corev1.PersistentVolume) {
	GinkgoHelper()
	w := newWorld(reconciler.ClusterScope)
	claim, pv := Claim(), Volume("v", append(options, Reclaimed(corev1.PersistentVolumeReclaimDelete))...)
	w.create(claim, pv)
	w.settle()
	expectBound(w, claim, pv)
	w.delete(claim)
	w.settle()
	return w, pv
}

func ofDriver(name string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: name, VolumeHandle: "handle-of-" + pv.Name},
		}
	}
}

func gcePD(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
}

// held puts the finalizers on a volume that in-tree and external provisioners have.
func held(pv *corev1.PersistentVolume) {
	pv.Finalizers = []string{volume.PVDeletionInTreeProtectionFinalizer, volume.PVDeletionProtectionFinalizer}
}
