package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/storageclass"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("The older annotation of a class", func() {
	It("names the class of a claim, and of a volume, before the field does", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pv := Claim(), Volume("v")
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, corev1.BetaStorageClassAnnotation, "fast")
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, corev1.BetaStorageClassAnnotation, "fast")
		w.create(Volume("a-classless"), pv, claim)

		w.settle()

		expectBound(w, claim, pv)
	})

	It("keeps a claim from getting the default class, also when it names none", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(unclassed)
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, corev1.BetaStorageClassAnnotation, "")
		class := Class("default", "example.com/disks", nil)
		w.create(claim)
		metav1.SetMetaDataAnnotation(&class.ObjectMeta, storageclass.AnnDefaultClass, "true")
		w.create(class)

		w.settle()

		w.get(claim)
		Expect(claim.Spec.StorageClassName).To(BeNil())
	})
})

var _ = Describe("A claim without a class", func() {
	It("gets a default class as soon as there is one, also of several, and one of class \"\" none", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, classless := Claim(unclassed), Claim(ClaimNamed("classless"))
		w.create(claim, classless)
		w.settle()

		for _, name := range []string{"b", "a"} {
			class := Class(name, "example.com/disks", nil)
			metav1.SetMetaDataAnnotation(&class.ObjectMeta, storageclass.AnnDefaultClass, "true")
			w.create(class)
		}
		w.settle()

		w.get(claim)
		w.get(classless)
		Expect(claim.Spec.StorageClassName).To(HaveValue(BeElementOf("a", "b")))
		Expect(classless.Spec.StorageClassName).To(HaveValue(BeEmpty()))
	})
})

func TestTheNewestDefaultClassIsTheDefault(t *testing.T) {
	for name, test := range map[string]struct {
		classes []storagev1.StorageClass
		want    string
	}{
		"none":                  {nil, ""},
		"none that is default":  {[]storagev1.StorageClass{aged("a", 1, "")}, ""},
		"the newest":            {[]storagev1.StorageClass{aged("a", 1, storageclass.AnnDefaultClass), aged("b", 2, storageclass.AnnDefaultClass)}, "b"},
		"the first of equals":   {[]storagev1.StorageClass{aged("b", 1, storageclass.AnnDefaultClass), aged("a", 1, storageclass.AnnDefaultClass)}, "a"},
		"by the older name too": {[]storagev1.StorageClass{aged("a", 1, storageclass.AnnBetaDefaultClass)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if class := persistentvolumeclaim.DefaultOf(test.classes); class != nil {
				got = class.Name
			}
			if got != test.want {
				t.Errorf("%q is the default, not %q", got, test.want)
			}
		})
	}
}

func aged(name string, seconds int64, annotation string) storagev1.StorageClass {
	class := Class(name, "example.com/disks", nil)
	class.CreationTimestamp = metav1.NewTime(time.Unix(seconds, 0))
	if annotation != "" {
		class.Annotations = map[string]string{annotation: "true"}
	}
	return *class
}

func unclassed(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil }
