package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/uses"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A VolumeAttributesClass", func() {
	It("is protected, also where the admission plug-in is off", func() {
		w := newWorld(reconciler.ClusterScope)
		class := attributesClass("gold")
		w.create(class)
		update(w, class, func(class *storagev1.VolumeAttributesClass) { class.Finalizers = nil })

		w.settle()

		w.get(class)
		Expect(class.Finalizers).To(ConsistOf(uses.AttributesClassProtection))
	})

	It("goes at once when nothing uses it", func() {
		w := newWorld(reconciler.ClusterScope)
		class := attributesClass("gold")
		w.create(class, Claim(ofAttributes("silver")))
		w.settle()

		w.delete(class)
		w.settle()

		Expect(w.gone(class)).To(BeTrue())
	})

	It("is kept while a claim requests it, and goes with the claim", func() {
		w := newWorld(reconciler.ClusterScope)
		class, claim := attributesClass("gold"), Claim(ofAttributes("gold"))
		w.create(class, claim)
		w.settle()

		w.delete(class)
		w.settle()
		Expect(w.gone(class)).To(BeFalse())

		w.delete(claim)
		w.settle()
		Expect(w.gone(class)).To(BeTrue())
	})

	It("is kept while a volume has it", func() {
		w := newWorld(reconciler.ClusterScope)
		class, pv := attributesClass("gold"), Volume("v", attributed)
		w.create(class, pv)
		w.settle()

		w.delete(class)
		w.settle()
		Expect(w.gone(class)).To(BeFalse())

		w.delete(pv)
		w.settle()
		Expect(w.gone(class)).To(BeTrue())
	})

	It("is kept when the cache has not seen the claim that uses it", func() {
		w := newWorld(reconciler.ClusterScope)
		class := attributesClass("gold")
		w.create(class, Claim(ofAttributes("gold")))
		w.settle()

		w.views.classes.Client = listingNothing{w}
		w.delete(class)
		w.settle()

		Expect(w.gone(class)).To(BeFalse())
	})
})

func attributesClass(name string) *storagev1.VolumeAttributesClass {
	return &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		DriverName: "example.com/disks",
		Parameters: map[string]string{"iops": "3000"},
	}
}

func ofAttributes(class string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = &class }
}

// attributed sets the class gold of a volume: only volumes with a csi source have one.
func attributed(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: "disks.example.com", VolumeHandle: pv.Name},
	}
	pv.Spec.VolumeAttributesClassName = ptr.To("gold")
}

// listingNothing is a cache that has seen no claims and no volumes yet.
type listingNothing struct{ client.Client }

func (listingNothing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}
