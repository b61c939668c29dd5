package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A StorageBackend", func() {
	It("is Ready, says what it is, and has every condition", func() {
		w := newWorld(reconciler.ClusterScope)
		object := LocalBackend("disks")
		w.create(object)

		w.settle()

		w.get(object)
		Expect(object.Status.Type).To(Equal(stowagev1alpha1.LocalType))
		Expect(object.Status.Driver).To(Equal(stowagev1alpha1.LocalDriver))
		Expect(object.Status.ObservedGeneration).To(Equal(object.Generation))
		for _, name := range []string{"Ready", "Accepted", "Reachable", "StorageClassReady", "SnapshotsServed"} {
			Expect(meta.IsStatusConditionTrue(object.Status.Conditions, name)).To(BeTrue(), name)
		}
	})

	It("is ready, and says so, where no VolumeSnapshots are served", func() {
		w := newWorld(reconciler.ClusterScope)
		w.unserved = "the CRDs of snapshot.storage.k8s.io/v1 are not installed"
		object := LocalBackend("disks")
		w.create(object)
		w.settle()

		w.get(object)
		served := meta.FindStatusCondition(object.Status.Conditions, "SnapshotsServed")
		Expect(served.Status).To(Equal(metav1.ConditionFalse))
		Expect(served.Reason).To(Equal("CRDsMissing"))
		Expect(served.Message).To(HavePrefix(w.unserved + ": volumes have no snapshots until they are"))
		Expect(meta.IsStatusConditionTrue(object.Status.Conditions, "Ready")).To(BeTrue())
	})

	It("writes nothing when nothing changed", func() {
		w := newWorld(reconciler.ClusterScope)
		w.create(LocalBackend("disks"))
		w.settle()
		before := w.written
		Expect(w.round()).To(Succeed())
		Expect(w.written).To(Equal(before))
	})

	It("is not Ready while its storage does not answer, and reports it", func() {
		w := newWorld(reconciler.ClusterScope)
		object := LocalBackend("disks")
		w.storage.SetProbe(backend.Unavailable.Errorf("no node has the labels"))
		w.create(object)

		w.settle()

		expectNotReady(w, object, stowagev1alpha1.ReasonUnavailable, "no node has the labels")
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("no node has the labels")))
	})

	It("is not Ready when this version can't serve its kind", func() {
		w := newWorld(reconciler.ClusterScope)
		object := LocalBackend("share")
		object.Spec.Local, object.Spec.NFS = nil, &stowagev1alpha1.NFSBackend{Server: "nfs.example.com", Path: "/srv"}
		w.create(object)

		w.settle()

		expectNotReady(w, object, stowagev1alpha1.ReasonInvalid, "type NFS are not served")
	})

	It("counts its volumes", func() {
		w, _, _ := madeVolumeOf()
		object := LocalBackend("disks")
		w.get(object)
		Expect(object.Status.Volumes).To(Equal(ptr.To(int32(1))))
	})
})

var _ = Describe("The StorageClass of a backend", func() {
	It("is kept as the spec says, and follows what may change", func() {
		w := newWorld(reconciler.ClassesScope)
		object := LocalBackend("disks")
		w.create(object)
		w.settle()
		class := Class("disks", "", nil)
		w.get(class)
		Expect(class.Provisioner).To(Equal(stowagev1alpha1.LocalDriver))
		Expect(class.Parameters).To(Equal(map[string]string{"backend": "disks"}))
		Expect(class.Annotations).NotTo(HaveKey(storageclass.AnnDefaultClass))

		update(w, object, func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.StorageClass.IsDefault = true
			object.Spec.StorageClass.MountOptions = []stowagev1alpha1.MountOption{"noatime"}
		})
		w.settle()

		w.get(class)
		Expect(class.Annotations).To(HaveKeyWithValue(storageclass.AnnDefaultClass, "true"))
		Expect(class.MountOptions).To(Equal([]string{"noatime"}))
	})

	It("waits for consumers by default, because local storage is not everywhere", func() {
		w := newWorld(reconciler.ClusterScope)
		w.create(LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.StorageClass = &stowagev1alpha1.StorageClassTemplate{Name: "quick"}
		}))
		w.settle()
		class := Class("quick", "", nil)
		w.get(class)
		Expect(class.VolumeBindingMode).To(Equal(ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)))
	})

	It("is created again when it is deleted by hand, and removed when the spec drops it", func() {
		w := newWorld(reconciler.ClusterScope)
		object, class := LocalBackend("disks"), Class("disks", "", nil)
		w.create(object)
		w.settle()
		w.delete(class)
		w.settle()
		w.get(class)

		update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Spec.StorageClass = nil })
		w.settle()

		Expect(w.gone(class)).To(BeTrue())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("StorageClassRemoved removed StorageClass disks")))
	})

	It("may be copied under another name: the copy stays, with all that was copied", func() {
		w := newWorld(reconciler.ClusterScope)
		object, class := LocalBackend("disks"), Class("disks", "", nil)
		w.create(object)
		w.settle()
		w.get(class)
		theirs := class.DeepCopy()
		theirs.Name, theirs.ResourceVersion, theirs.UID = "disks-of-theirs", "", ""
		w.create(theirs)

		w.settle()
		Expect(w.gone(theirs)).To(BeFalse())

		update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Spec.StorageClass = nil })
		w.settle()
		Expect(w.gone(class)).To(BeTrue())
		Expect(w.gone(theirs)).To(BeFalse())
	})

	DescribeTable("is created again when spec.storageClass was removed and set again between two passes",
		func(change func(*stowagev1alpha1.StorageClassTemplate), policy corev1.PersistentVolumeReclaimPolicy, mode storagev1.VolumeBindingMode) {
			w := newWorld(reconciler.ClusterScope)
			object := LocalBackend("disks")
			w.create(object)
			w.settle()

			update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Spec.StorageClass = nil })
			update(w, object, func(object *stowagev1alpha1.StorageBackend) {
				object.Spec.StorageClass = LocalBackend("disks").Spec.StorageClass
				change(object.Spec.StorageClass)
			})
			w.settle()

			class := Class("disks", "", nil)
			w.get(class)
			Expect(class.ReclaimPolicy).To(Equal(&policy))
			Expect(class.VolumeBindingMode).To(Equal(&mode))
		},
		Entry("with another reclaim policy", func(template *stowagev1alpha1.StorageClassTemplate) {
			template.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, corev1.PersistentVolumeReclaimRetain, storagev1.VolumeBindingImmediate),
		Entry("with another binding mode", func(template *stowagev1alpha1.StorageClassTemplate) {
			template.VolumeBindingMode = storagev1.VolumeBindingWaitForFirstConsumer
		}, corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingWaitForFirstConsumer),
	)

	It("allows the zones of the cloud's disks, in whatever order they are listed", func() {
		w := newWorld(reconciler.ClusterScope)
		object := zonedCloud("b", "a")
		w.create(object)
		w.settle()
		class := Class("cloud", "", nil)
		w.get(class)
		Expect(class.AllowedTopologies).To(Equal(inZones("a", "b")))

		update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.Zones = []string{"a", "b"} })
		w.settle()

		Expect(uidNow(w, "cloud")).To(Equal(class.UID))
	})

	It("is created again when the cloud's zones change", func() {
		w := newWorld(reconciler.ClusterScope)
		object := zonedCloud("a")
		w.create(object)
		w.settle()
		class := Class("cloud", "", nil)
		w.get(class)
		before := class.UID
		class.Labels["team"], class.Annotations = "storage", map[string]string{"example.com/note": "theirs"}
		Expect(w.Update(GinkgoT().Context(), class)).To(Succeed())

		update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.Zones = []string{"a", "b"} })
		w.settle()

		w.get(class)
		Expect(class.UID).NotTo(Equal(before))
		Expect(class.Labels).To(HaveKeyWithValue("team", "storage"), "what others wrote on it stays")
		Expect(class.Annotations).To(HaveKeyWithValue("example.com/note", "theirs"))
		Expect(class.AllowedTopologies).To(Equal(inZones("a", "b")))
		Expect(metav1.IsControlledBy(class, object)).To(BeTrue())
	})

	for _, kind := range []fault{lost, unanswered} {
		for number := range 2 {
			It("is created again when write "+string(rune('1'+number))+" of it is "+string(kind), func() {
				w := newWorld(reconciler.ClusterScope)
				object := zonedCloud("a")
				w.create(object)
				w.settle()
				update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.Zones = []string{"b"} })

				w.faults = map[int]fault{w.written + number: kind}
				_, err := w.backends.Reconcile(GinkgoT().Context(), wake.Request(object))
				Expect(err).To(HaveOccurred())
				w.restart()
				w.settle()

				class := Class("cloud", "", nil)
				w.get(class)
				Expect(class.AllowedTopologies).To(Equal(inZones("b")))
			})
		}
	}

	DescribeTable("is left alone by a manager with a stale cache",
		func(change func(*world, *storagev1.StorageClass)) {
			w := newWorld(reconciler.ClusterScope)
			object, class := zonedCloud("a"), Class("cloud", "", nil)
			w.create(object)
			w.settle()
			w.get(class)
			shown := class.DeepCopy()
			change(w, class)
			now := uidNow(w, "cloud")
			update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.Zones = []string{"b"} })

			w.views.backends.Client = stale{w, []client.Object{shown}}
			_, err := w.backends.Reconcile(GinkgoT().Context(), wake.Request(object))

			Expect(err).To(HaveOccurred())
			Expect(uidNow(w, "cloud")).To(Equal(now))
		},
		Entry("when another manager created it again", func(w *world, class *storagev1.StorageClass) {
			recreated := class.DeepCopy()
			recreated.ResourceVersion, recreated.UID = "", ""
			w.delete(class)
			w.create(recreated)
		}),
		Entry("when another owner took it", func(w *world, class *storagev1.StorageClass) {
			update(w, class, func(class *storagev1.StorageClass) { class.OwnerReferences = nil })
		}),
	)

	It("is never taken from another owner", func() {
		w := newWorld(reconciler.ClusterScope)
		object := LocalBackend("disks")
		w.create(Class("disks", "example.com/other", nil), object)

		w.settle()

		expectNotReady(w, object, stowagev1alpha1.ReasonStorageClassConflict, "is not this backend's")
		class := Class("disks", "", nil)
		w.get(class)
		Expect(class.Provisioner).To(Equal("example.com/other"))
	})
})

var _ = Describe("A deleted StorageBackend", func() {
	It("waits for its volumes, and takes no new ones", func() {
		w, claim, _ := madeVolumeOf()
		object := LocalBackend("disks")
		w.delete(object)
		w.settle()
		expectNotReady(w, object, stowagev1alpha1.ReasonInUse, "waits for volume pvc-")
		Expect(w.gone(Class("disks", "", nil))).To(BeTrue())

		w.delete(claim)
		w.settle()

		Expect(w.gone(object)).To(BeTrue())
	})

	It("reads its users live only when the cache shows none", func() {
		w, _, _ := madeVolumeOf()
		object := LocalBackend("disks")
		w.delete(object)

		w.views.backends.live.Reader = unlistable{w}
		_, err := w.backends.Reconcile(GinkgoT().Context(), wake.Request(object))

		Expect(err).NotTo(HaveOccurred())
		expectNotReady(w, object, stowagev1alpha1.ReasonInUse, "waits for volume pvc-")
	})

	It("waits for a volume that the cache has not seen", func() {
		w, _, pv := madeVolumeOf()
		object := LocalBackend("disks")
		w.delete(object)

		w.views.backends.Client = withoutVolume{w, pv.Name}
		w.settle()

		expectNotReady(w, object, stowagev1alpha1.ReasonInUse, "waits for volume "+pv.Name)
	})

	DescribeTable("has advice about its users",
		func(user client.Object, advice string) {
			w := newWorld(reconciler.ClusterScope)
			object := LocalBackend("disks")
			w.create(object, user)
			w.settle()

			w.delete(object)
			w.settle()

			expectNotReady(w, object, stowagev1alpha1.ReasonInUse, advice)
		},
		Entry("a volume of policy Delete", Volume("v", inBackend("disks"), Reclaimed(corev1.PersistentVolumeReclaimDelete)),
			"volume v: delete its claim, or set its policy to Retain to keep its data"),
		Entry("a volume of policy Retain", Volume("v", inBackend("disks")),
			"volume v, whose policy keeps its data: delete its claim, and then the volume"),
		Entry("the record of a volume on a node", record("pvc-1", "disks"),
			"NodeVolume pvc-1, which no volume uses: delete it and set its spec.removeData"),
		Entry("the record of a volume that a CSI call made", record(madeByCall, "disks"),
			"NodeVolume "+madeByCall+", which a call of a CSI socket made: have it removed by such a call"),
	)

	It("is no error when the cache still shows it after it is gone, and gets no class", func() {
		w := newWorld(reconciler.ClusterScope)
		object := LocalBackend("disks")
		w.create(object)
		shown := object.DeepCopy()
		w.delete(object)
		w.settle()
		Expect(w.gone(object)).To(BeTrue())

		w.views.backends.Client = stale{w, []client.Object{shown}}
		_, err := w.backends.Reconcile(GinkgoT().Context(), wake.Request(shown))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.gone(Class("disks", "", nil))).To(BeTrue())
	})

	It("goes at once when nothing uses it", func() {
		w := newWorld(reconciler.ClusterScope)
		object := LocalBackend("disks")
		w.create(object)
		w.settle()
		w.delete(object)
		w.settle()
		Expect(w.gone(object)).To(BeTrue())
	})

	It("waits for a claim that may have storage", func() {
		w := newWorld(reconciler.ClusterScope)
		object, claim := LocalBackend("disks"), Claim(InClass("disks"))
		w.create(object)
		w.settle()
		w.halfMake(claim)

		w.delete(object)
		_, err := w.backends.Reconcile(GinkgoT().Context(), wake.Request(object))

		Expect(err).NotTo(HaveOccurred())
		expectNotReady(w, object, stowagev1alpha1.ReasonInUse, "waits for claim default/data")
	})
})

// zonedCloud is a cloud that makes disks in some zones.
func zonedCloud(zones ...string) *stowagev1alpha1.StorageBackend {
	object := cloud(waitingForConsumer)
	object.Spec.GCE.Zones = zones
	return object
}

// inZones allows nodes of some zones.
func inZones(zones ...string) []corev1.TopologySelectorTerm {
	return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: zones},
	}}}
}

func uidNow(w *world, class string) types.UID {
	GinkgoHelper()
	object := Class(class, "", nil)
	w.get(object)
	return object.UID
}

// inBackend puts a static volume into a backend.
func inBackend(name string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: stowagev1alpha1.LocalDriver, VolumeHandle: pv.Name,
			VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: name},
		}}
	}
}

// record is the record of a volume on a node, for which there is no volume object.
func record(name, backend string) *stowagev1alpha1.NodeVolume {
	return &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: stowagev1alpha1.NodeVolumeSpec{
			NodeName: "node-1", Backend: backend, Path: "/var/lib/stowage/disks",
			Capacity: Volume(name).Spec.Capacity[corev1.ResourceStorage],
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: Namespace, Name: "data", UID: "1"},
		},
	}
}

func expectNotReady(w *world, object *stowagev1alpha1.StorageBackend, reason, message string) {
	GinkgoHelper()
	w.get(object)
	ready := meta.FindStatusCondition(object.Status.Conditions, stowagev1alpha1.ReadyCondition)
	Expect(ready).NotTo(BeNil())
	Expect(ready.Status).To(Equal(metav1.ConditionFalse))
	Expect(ready.Reason).To(Equal(reason))
	Expect(ready.Message).To(ContainSubstring(message))
}
