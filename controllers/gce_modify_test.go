package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
	made, changed map[string]backend.Attributes
}

// Type and Open make it the one kind of backend.
func (*changeable) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.GCEType }

func (c *changeable) Open(*stowagev1alpha1.StorageBackend) (backend.Backend, error) { return c, nil }

func (c *changeable) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	if request.Attributes != nil {
		c.made[request.ID] = *request.Attributes
	}
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
			disks := &changeable{Backend: w.storage, made: map[string]backend.Attributes{}, changed: map[string]backend.Attributes{}}
			w.serve(disks)
			claim := Claim(InClass("cloud"), ofAttributes("gold"))
			if scope == reconciler.ClassesScope {
				requestedFrom(stowagev1alpha1.GCEDriver)(claim)
			}
			w.create(cloud(), attributesOfDriver("gold", stowagev1alpha1.GCEDriver), attributesOfDriver("silver", stowagev1alpha1.GCEDriver), claim)
			w.settle()
			pv := Volume(provisioned.VolumeID(claim))
			w.get(pv)
			if scope == reconciler.ClassesScope {
				w.bindAsKubernetes(claim, pv)
				w.settle()
			}
			expectAttributes(w, claim, pv, "gold")
			Expect(disks.made[pv.Name].Parameters).To(Equal(map[string]string{"iops": "gold"}))

			w.requestAttributes(claim, "silver")

			expectAttributes(w, claim, pv, "silver")
			Expect(disks.changed[pv.Name].Parameters).To(Equal(map[string]string{"iops": "silver"}))
		})
	}

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
