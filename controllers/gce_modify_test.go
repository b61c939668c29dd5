package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// changeable is a cloud whose disks can get other attributes.
type changeable struct {
	*fake.Backend
	changed map[string]backend.Attributes
	// made are all calls that make a disk.
	made []backend.Request
}

func newChangeable(w *world) *changeable {
	disks := &changeable{Backend: w.storage, changed: map[string]backend.Attributes{}}
	w.serve(disks)
	return disks
}

// Type and Open make it the one kind of backend.
func (*changeable) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.GCEType }

func (c *changeable) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) { return c, nil }

func (c *changeable) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	c.made = append(c.made, request)
	return c.Backend.Provision(ctx, request)
}

func (c *changeable) Modify(_ context.Context, id string, attributes backend.Attributes) error {
	c.changed[id] = attributes
	return nil
}

var _ = Describe("A claim of a cloud's disk that names a VolumeAttributesClass", func() {
	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		It("gets a disk with its attributes, and those of another later, in scope="+string(scope), func() {
			w := newWorld(scope)
			disks := newChangeable(w)
			claim := Claim(InClass("cloud"), ofAttributes("gold"))
			if scope == reconciler.ClassesScope {
				requestedFrom(stowagev1alpha1.GCEDriver)(claim)
			}
			w.create(cloud(), attributesOfDriver("gold", stowagev1alpha1.GCEDriver), attributesOfDriver("silver", stowagev1alpha1.GCEDriver), claim)
			pv := w.settleBound(claim)
			expectAttributes(w, claim, pv, "gold")
			Expect(disks.made).To(HaveEach(havingIOPS("gold")))

			w.requestAttributes(claim, "silver")

			expectAttributes(w, claim, pv, "silver")
			Expect(disks.changed[pv.Name].Parameters).To(Equal(map[string]string{"iops": "silver"}))
		})
	}

	It("is undone by a repeat with the same attributes", func() {
		w, disks, claim := halfMadeDisk()
		w.delete(claim)

		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
		Expect(len(disks.made)).To(BeNumerically(">", 1))
		Expect(disks.made).To(HaveEach(havingIOPS("gold")))
	})

	It("can be deleted though its class is gone, too", func() {
		w, _, claim := halfMadeDisk()
		removeAttributes(w)
		w.delete(claim)

		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
	})

	It("starts over where its class was created again since", func() {
		w, disks, claim := halfMadeDisk()
		removeAttributes(w)
		again := attributesOfDriver("gold", stowagev1alpha1.GCEDriver)
		again.Parameters["iops"] = "other"
		w.create(again)

		w.settle()

		Expect(disks.made[len(disks.made)-1]).To(havingIOPS("other"))
		Expect(provisioned.AttemptOf(w.read(claim))).To(Equal(2))
		expectAttributes(w, claim, Volume(provisioned.VolumeID(w.read(claim))), "gold")
		Expect(w.storage.Len()).To(Equal(1))
	})

	It("is refused where the class is another driver's", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("cloud"), ofAttributes("gold"))
		w.create(cloud(), attributesOfDriver("gold", "pd.csi.storage.gke.io"), claim)
		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring(`is for driver "pd.csi.storage.gke.io"`))
		Expect(w.storage.Calls()).To(BeEmpty())
	})
})

var _ = Describe("A claim of a node's disk that names a VolumeAttributesClass", func() {
	It("is refused: directories and images have no attributes", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("fast"), ofAttributes("gold"))
		w.create(LocalBackend("fast"), attributesOfDriver("gold", stowagev1alpha1.LocalDriver), claim)
		w.settle()

		Expect(w.condition(claim).Message).To(ContainSubstring("StorageBackend fast knows no volumeAttributesClass: create the claim without one"))
		Expect(w.storage.Calls()).To(BeEmpty())
	})
})

func havingIOPS(number string) types.GomegaMatcher {
	return HaveField("Attributes", HaveValue(HaveField("Parameters", Equal(map[string]string{"iops": number}))))
}

// halfMadeDisk is a cluster with a claim whose disk is made, and whose volume object is lost on the way.
func halfMadeDisk() (*world, *changeable, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w := newWorld(reconciler.ClusterScope)
	disks, claim := newChangeable(w), Claim(InClass("cloud"), ofAttributes("gold"))
	w.create(cloud(), attributesOfDriver("gold", stowagev1alpha1.GCEDriver))
	w.settle()
	w.halfMake(claim)
	w.restart()
	w.serve(disks)
	Expect(w.storage.Len()).To(Equal(1))
	Expect(w.all(&corev1.PersistentVolumeList{})).To(BeEmpty())
	return w, disks, claim
}

// removeAttributes removes a class by force: a person took its finalizer off.
func removeAttributes(w *world) {
	GinkgoHelper()
	class := attributesOfDriver("gold", stowagev1alpha1.GCEDriver)
	w.delete(class)
	if !w.gone(class) {
		update(w, class, func(class *storagev1.VolumeAttributesClass) { class.Finalizers = nil })
	}
}
