package controllers

import (
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// quick is a class with a parameter that the cloud gets.
func quick() *storagev1.StorageClass {
	return Class("quick", stowagev1alpha1.GCEDriver, map[string]string{"backend": "cloud", "type": "pd-ssd"})
}

func allowing(names ...stowagev1alpha1.GCEClassParameter) func(*stowagev1alpha1.StorageBackend) {
	return func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.ClassParameters = names }
}

// havingParameters matches a call with parameters of the class.
func havingParameters(parameters map[string]string) types.GomegaMatcher {
	return HaveField("Parameters", Equal(parameters))
}

// newQuick is a cluster with that class, and a cloud that allows parameters.
func newQuick(scope reconciler.Scope, names ...stowagev1alpha1.GCEClassParameter) (*world, *changeable) {
	GinkgoHelper()
	w := newWorld(scope)
	disks := newChangeable(w)
	object := cloud()
	allowing(names...)(object)
	w.create(object, quick())
	w.settle()
	return w, disks
}

// halfMadeQuick is a cluster with a claim whose disk is made, and whose volume object is lost on the way.
func halfMadeQuick() (*world, *changeable, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w, disks := newQuick(reconciler.ClusterScope, stowagev1alpha1.GCETypeParameter)
	claim := Claim(InClass("quick"))
	w.create(claim)
	w.faults = map[int]fault{w.written + 2: lost}
	_ = w.round()
	w.restart()
	w.serve(disks)
	Expect(w.storage.Len()).To(Equal(1))
	Expect(w.all(&corev1.PersistentVolumeList{})).To(BeEmpty())
	return w, disks, claim
}

var _ = Describe("A claim of a cloud's class with parameters", func() {
	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		It("gets a disk with them, where its backend allows them, in scope="+string(scope), func() {
			w, disks := newQuick(scope, stowagev1alpha1.GCETypeParameter)
			claim := Claim(InClass("quick"))
			if scope == reconciler.ClassesScope {
				requestedFrom(stowagev1alpha1.GCEDriver)(claim)
			}
			w.create(claim)
			w.settle()

			w.get(Volume(provisioned.VolumeID(claim)))
			Expect(disks.made).To(HaveEach(havingParameters(map[string]string{"type": "pd-ssd"})))
		})
	}

	It("gets a disk in its storage pools and with its tags", func() {
		w, disks := newQuick(reconciler.ClusterScope, stowagev1alpha1.GCEPoolsParameter, stowagev1alpha1.GCETagsParameter)
		parameters := map[string]string{"storage-pools": "projects/p/zones/z/storagePools/fast", "resource-tags": "123/team/shop"}
		pooled := Class("pooled", stowagev1alpha1.GCEDriver, map[string]string{"backend": "cloud"})
		maps.Copy(pooled.Parameters, parameters)
		claim := Claim(InClass("pooled"))
		w.create(pooled, claim)
		w.settle()

		w.get(Volume(provisioned.VolumeID(claim)))
		Expect(disks.made).To(HaveEach(havingParameters(parameters)))
		Expect(hasProvisioningFinalizer(w, pooled)).To(BeTrue())
	})

	It("says which its backend allows, and gets no disk without them", func() {
		w, _ := newQuick(reconciler.ClusterScope, stowagev1alpha1.GCELabelsParameter)
		claim := Claim(InClass("quick"))
		w.create(claim)
		w.settle()

		Expect(w.condition(claim).Message).To(And(
			ContainSubstring(`unknown parameter "type": there are "backend", "csi.storage.k8s.io/fstype" and "labels"`),
			ContainSubstring("gce.classParameters of StorageBackend cloud can allow others")))
		Expect(w.storage.Calls()).To(BeEmpty())
	})

	It("isn't begun with a class that is being deleted", func() {
		w, _ := newQuick(reconciler.ClusterScope, stowagev1alpha1.GCETypeParameter)
		update(w, quick(), func(class *storagev1.StorageClass) { class.Finalizers = []string{"example.com/kept"} })
		w.delete(quick())
		claim := Claim(InClass("quick"))
		w.create(claim)
		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("StorageClass quick is being deleted: use another class"))
		Expect(w.storage.Calls()).To(BeEmpty())
	})

	DescribeTable("is undone by a repeat with the same parameters",
		func(change func(*world, *corev1.PersistentVolumeClaim)) {
			w, disks, claim := halfMadeQuick()
			Expect(hasProvisioningFinalizer(w, quick())).To(BeTrue())
			w.delete(quick())
			change(w, claim)
			w.delete(claim)

			w.settle()

			Expect(w.gone(claim)).To(BeTrue())
			Expect(w.storage.Len()).To(BeZero())
			Expect(len(disks.made)).To(BeNumerically(">", 1))
			Expect(disks.made).To(HaveEach(havingParameters(map[string]string{"type": "pd-ssd"})))
			Expect(w.gone(quick())).To(BeTrue())
		},
		Entry("though its class is deleted", func(*world, *corev1.PersistentVolumeClaim) {}),
		Entry("though its backend doesn't allow them any more", func(w *world, _ *corev1.PersistentVolumeClaim) {
			update(w, cloud(), allowing())
		}),
		Entry("though a user removed the record of the operation", func(w *world, claim *corev1.PersistentVolumeClaim) {
			update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
				delete(claim.Annotations, stowagev1alpha1.ProvisioningAnnotation)
			})
		}),
	)

	It("starts over where its class was created again since, with parameters", func() {
		w, disks := newQuick(reconciler.ClusterScope, stowagev1alpha1.GCETypeParameter)
		plain := Class("plain", stowagev1alpha1.GCEDriver, map[string]string{"backend": "cloud"})
		claim := Claim(InClass("plain"))
		w.create(plain)
		w.halfMake(claim)
		Expect(w.storage.Len()).To(Equal(1))
		w.delete(plain)
		again := Class("plain", stowagev1alpha1.GCEDriver, map[string]string{"backend": "cloud", "type": "pd-ssd"})
		w.create(again)
		w.restart()
		w.serve(disks)
		w.settle()

		Expect(provisioned.AttemptOf(w.read(claim))).To(Equal(2))
		Expect(w.storage.Len()).To(Equal(1))
		Expect(disks.made[len(disks.made)-1]).To(havingParameters(map[string]string{"type": "pd-ssd"}))
	})

	It("can be deleted though a person removed the class's finalizer", func() {
		w, _, claim := halfMadeQuick()
		w.delete(quick())
		update(w, quick(), func(class *storagev1.StorageClass) { class.Finalizers = nil })
		w.delete(claim)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("isn't undone with the parameters of another class that its annotation names", func() {
		w, disks, claim := halfMadeQuick()
		other := Class("other", stowagev1alpha1.GCEDriver, map[string]string{"backend": "cloud", "type": "pd-standard"})
		w.create(other)
		update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, stowagev1alpha1.ProvisioningAnnotation,
				`{"backend":"cloud","attempt":1,"class":{"name":"other","uid":"`+string(other.UID)+`"}}`)
		})
		w.delete(claim)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
		Expect(disks.made).NotTo(ContainElement(havingParameters(map[string]string{"type": "pd-standard"})))
	})

	It("leaves no finalizer on its class after its backend is gone", func() {
		w, _ := newQuick(reconciler.ClusterScope, stowagev1alpha1.GCETypeParameter)
		claim := Claim(InClass("quick"))
		w.create(claim)
		w.settle()
		Expect(hasProvisioningFinalizer(w, quick())).To(BeTrue())
		w.delete(claim)
		w.settle()
		w.delete(cloud())
		w.settle()

		Expect(w.gone(cloud())).To(BeTrue())
		Expect(hasProvisioningFinalizer(w, quick())).To(BeFalse())
	})
})
