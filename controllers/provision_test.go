package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim of one of Stowage's classes", func() {
	It("gets a volume made for it, named by its UID and owned by its class", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"), claim)

		w.settle()

		pv := Volume(provisioned.VolumeID(claim))
		expectBound(w, claim, pv)
		Expect(pv.Name).To(Equal("pvc-" + string(claim.UID)))
		Expect(pv.Annotations).To(HaveKeyWithValue(volume.AnnDynamicallyProvisioned, stowagev1alpha1.LocalDriver))
		Expect(pv.Spec.StorageClassName).To(Equal("disks"))
		Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete))
		Expect(pv.Finalizers).To(ContainElement(stowagev1alpha1.ReclaimFinalizer))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("ProvisioningSucceeded")))
	})

	It("takes five writes to be provisioned, and one to count the volume", func() {
		w := newWorld(reconciler.ClusterScope)
		w.create(LocalBackend("disks"))
		w.settle()
		w.create(Claim(InClass("disks")))

		before := w.written
		w.settle()

		Expect(w.written - before).To(Equal(5 + 1))
	})

	It("waits for its first consumer where the class says so, and takes the node of a pod placed by hand", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"), claim)
		w.settle()
		Expect(w.condition(claim).Reason).To(Equal("WaitForFirstConsumer"))

		w.create(Pod("user", "node-1", "data"))
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	DescribeTable("keeps what was made for a pod that went before it was recorded",
		func(then func(w *world, claim *corev1.PersistentVolumeClaim)) {
			w := newWorld(reconciler.ClusterScope)
			claim, pod := Claim(InClass("disks")), Pod("user", "node-1", "data")
			w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"))
			w.settle()
			w.create(pod)
			w.halfMake(claim)
			w.delete(pod)
			w.settle()
			Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeTrue())
			Expect(w.condition(claim).Reason).To(Equal("WaitForFirstConsumer"))

			then(w, claim)
		},
		Entry("for the next pod", func(w *world, claim *corev1.PersistentVolumeClaim) {
			w.create(Pod("next", "node-1", "data"))
			w.settle()

			expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
			Expect(w.storage.Len()).To(Equal(1))
		}),
		Entry("until the claim is deleted", func(w *world, claim *corev1.PersistentVolumeClaim) {
			w.delete(claim)
			w.settle()

			Expect(w.gone(claim)).To(BeTrue())
			Expect(w.storage.Len()).To(BeZero())
		}),
	)

	It("goes by the pod whose node is there, and not by one that is on its way out", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"), claim,
			Pod("astray", "nowhere", "data"), Pod("user", "node-1", "data"))

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("reports that its pod is placed on a node that does not exist", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks", waitingForConsumer), claim, Pod("user", "nowhere", "data"))

		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("pod user chose node nowhere, which does not exist"))
		Expect(w.storage.Len()).To(BeZero())
	})

	DescribeTable("is refused, with a reason, and nothing is made",
		func(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, reason string) {
			w := newWorld(reconciler.ClusterScope)
			w.create(LocalBackend("disks"), class, claim)

			w.settle()

			condition := w.condition(claim)
			Expect(condition.Reason).To(Equal("ProvisioningFailed"))
			Expect(condition.Message).To(ContainSubstring(reason))
			Expect(w.newEvents()).To(ContainElement(ContainSubstring("Warning ProvisioningFailed")))
			Expect(w.storage.Len()).To(BeZero())
			Expect(claim.Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		},
		Entry("when its class names no backend", Claim(InClass("bad")),
			Class("bad", stowagev1alpha1.LocalDriver, nil), `parameter "backend" is missing`),
		Entry("when its class names an unknown backend", Claim(InClass("bad")),
			Class("bad", stowagev1alpha1.LocalDriver, map[string]string{"backend": "nope"}),
			`names the StorageBackend "nope", which does not exist`),
		Entry("when its class has an unknown parameter", Claim(InClass("bad")),
			Class("bad", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks", "speed": "9"}),
			`unknown parameter "speed"`),
		Entry("when its class names a file system that its backend doesn't make", Claim(InClass("bad")),
			Class("bad", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks", stowagev1alpha1.FSTypeParameter: "btrfs"}),
			`the file system "btrfs" is not supported here`),
		Entry("when it requests a clone of a claim that isn't there", Claim(InClass("good"), startingFrom("", provisioned.ClaimKind, "other")),
			Class("good", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks"}),
			"claim default/other, which is to be copied, does not exist"),
		Entry("when its class is of a driver that is not the backend's", Claim(InClass("mixed")),
			Class("mixed", stowagev1alpha1.NFSDriver, map[string]string{"backend": "disks"}), "is served by local.stowage.dev: use a class with that provisioner"),
		Entry("when it selects volumes by label", Claim(InClass("good"), Selecting("disk", "ssd")),
			Class("good", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks"}), "selector"),
	)

	DescribeTable("has the file system that its class names, unless it is a device",
		func(mode corev1.PersistentVolumeMode, fsType string) {
			w := newWorld(reconciler.ClusterScope)
			claim := Claim(InClass("fast"))
			claim.Spec.VolumeMode = &mode
			w.create(LocalBackend("disks"), claim,
				Class("fast", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks", stowagev1alpha1.FSTypeParameter: "xfs"}))

			w.settle()

			volume := Volume(provisioned.VolumeID(claim))
			expectBound(w, claim, volume)
			Expect(volume.Spec.CSI.FSType).To(Equal(fsType))
		},
		Entry("a file system", corev1.PersistentVolumeFilesystem, "xfs"),
		Entry("a device", corev1.PersistentVolumeBlock, ""),
	)

	It("shows the backend's error, and gets its volume when the error is over", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.create(claim)
		w.storage.FailNext(backend.Exhausted.Errorf("node-1 has 1Gi left"))
		_ = w.round()
		Expect(w.condition(claim).Message).To(Equal("node-1 has 1Gi left (tried again every 30s, and more rarely later)"))

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("leaves nothing behind when it is deleted in the middle", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.halfMake(claim)
		Expect(w.storage.Len()).To(Equal(1))

		w.delete(claim)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("has what was made for it removed when it was bound to another volume at the same time", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.halfMake(claim)

		w.create(Volume("static", OfClass("disks"), ReservedTo("data")))
		w.settle()

		expectBound(w, claim, Volume("static"))
		Expect(w.storage.Len()).To(BeZero())
	})

	It("can't have another tenant's volume removed by forging its own annotation", func() {
		w := newWorld(reconciler.ClusterScope)
		victim, forger := Claim(ClaimNamed("victim"), InClass("disks")), Claim(ClaimNamed("forger"))
		w.create(LocalBackend("disks"), victim, forger)
		w.settle()

		update(w, forger, func(claim *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, stowagev1alpha1.ProvisioningAnnotation,
				`{"backend":"disks","volume":"`+provisioned.VolumeID(victim)+`","attempt":1}`)
			claim.Finalizers = append(claim.Finalizers, stowagev1alpha1.ProvisioningFinalizer)
		})
		w.delete(forger)
		w.settle()

		Expect(w.gone(forger)).To(BeTrue())
		Expect(w.storage.Has(provisioned.VolumeID(victim))).To(BeTrue())
	})
})

var _ = Describe("Provisioning that is interrupted", func() {
	const writes = 5
	for _, kind := range []fault{lost, unanswered, contended} {
		for number := range writes {
			It("ends with one bound volume when write "+string(rune('1'+number))+" is "+string(kind), func() {
				w := newWorld(reconciler.ClusterScope)
				claim := Claim(InClass("disks"))
				w.create(LocalBackend("disks"))
				w.settle()
				w.create(claim)
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				w.restart()
				w.settle()

				expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
				Expect(w.storage.Len()).To(Equal(1))
			})

			It("leaves nothing when write "+string(rune('1'+number))+" is "+string(kind)+" and the claim is deleted", func() {
				w := newWorld(reconciler.ClusterScope)
				claim := Claim(InClass("disks"))
				w.create(LocalBackend("disks"))
				w.settle()
				w.create(claim)
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				w.restart()
				w.delete(claim)
				w.settle()

				Expect(w.gone(claim)).To(BeTrue())
				Expect(w.storage.Len()).To(BeZero())
				Expect(w.all(&corev1.PersistentVolumeList{})).To(BeEmpty())
			})
		}
	}
})

var _ = Describe("In scope=classes", func() {
	It("a claim is left alone until kube-controller-manager requests its volume, and is not bound", func() {
		w := newWorld(reconciler.ClassesScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"), claim)
		w.settle()
		Expect(w.storage.Len()).To(BeZero())

		update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnStorageProvisioner, stowagev1alpha1.LocalDriver)
		})
		w.settle()

		pv := Volume(provisioned.VolumeID(claim))
		w.get(pv)
		w.get(claim)
		Expect(pv.Spec.ClaimRef.UID).To(Equal(claim.UID))
		Expect(claim.Spec.VolumeName).To(BeEmpty())
		Expect(claim.Status.Conditions).To(BeEmpty())
		Expect(claim.Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		Expect(eventsWith(w.newEvents(), "ProvisioningSucceeded")).To(HaveLen(1))
	})

	It("static volumes and their claims are kube-controller-manager's", func() {
		w := newWorld(reconciler.ClassesScope)
		w.create(Volume("v"), Claim())

		w.settle()

		Expect(w.written).To(BeZero())
	})
})

func waitingForConsumer(object *stowagev1alpha1.StorageBackend) {
	object.Spec.StorageClass.VolumeBindingMode = storagev1.VolumeBindingWaitForFirstConsumer
}

var _ = Describe("A claim whose class allows some nodes only", func() {
	It("gets a volume that can be used there only", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("near"))
		w.create(LocalBackend("disks"), near(), claim)

		w.settle()

		w.get(claim)
		pv := Volume(claim.Spec.VolumeName)
		w.get(pv)
		Expect(volume.CheckNodeAffinity(pv, Node("node-1").Labels)).To(Succeed())
		Expect(volume.CheckNodeAffinity(pv, Node("node-2").Labels)).NotTo(Succeed())
	})

	It("is refused for a pod that was placed on another by hand", func() {
		w := newWorld(reconciler.ClusterScope)
		class := near()
		class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
		claim := Claim(InClass("near"))
		w.create(LocalBackend("disks"), class, claim, Node("node-2"), Pod("user", "node-2", "data"))

		w.settle()

		Expect(w.condition(claim).Message).To(HavePrefix("node node-2 is not within the allowedTopologies of StorageClass near"))
		Expect(w.storage.Len()).To(BeZero())
	})
})

func near() *storagev1.StorageClass {
	class := Class("near", stowagev1alpha1.LocalDriver, map[string]string{"backend": "disks"})
	class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: stowagev1alpha1.TopologyNodeLabel, Values: []string{"node-1"}},
	}}}
	return class
}
