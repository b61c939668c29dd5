package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim whose first volume was undone", func() {
	It("is made no volume of the first id by a leader whose cache is behind", func() {
		w, in, claim := halfMadeInFirst()
		shown := w.read(claim).DeepCopy()
		w.makeClassAnew("second")
		in.second.FailNext(backend.InProgress.Errorf("wait"))
		_ = w.round()
		in.second.FailNext(backend.InProgress.Errorf("wait"))
		_ = w.round()
		Expect(provisioned.AttemptOf(w.read(claim))).To(Equal(2))
		w.makeClassAnew("first")

		w.views.claims.Client = stale{w, []client.Object{shown}}
		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(claim))

		Expect(in.first.Has(provisioned.VolumeID(shown))).To(BeFalse())
	})

	It("has its storage removed though the cache of the leader that removes it is behind", func() {
		w, in, claim := halfMadeInFirst()
		shown := w.read(claim).DeepCopy()
		w.makeClassAnew("second")
		w.settleBut(in.second)
		w.delete(claim)
		shown.DeletionTimestamp = w.read(claim).DeletionTimestamp

		w.views.claims.Client = stale{w, []client.Object{shown}}
		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(claim))
		w.views.claims.Client = w
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(in.first.Len() + in.second.Len()).To(BeZero())
	})

	It("is not bound to a volume of the first id that a late leader records", func() {
		w, in, claim := halfMadeInFirst()
		undone := provisioned.VolumeID(claim)
		late := lateVolume(w, claim)
		w.makeClassAnew("second")
		w.settleBut(in.second)
		Expect(in.first.Len()).To(BeZero())

		w.create(late)
		w.settle()

		expectBound(w, claim, Volume(undone+"-2"))
		Expect(w.gone(late)).To(BeTrue())
	})

	It("leaves no other claim a volume of the first id that a late leader records", func() {
		w, _, claim := halfMadeInFirst()
		late := lateVolume(w, claim)
		w.makeClassAnew("second")
		w.settle()

		w.create(late)
		w.settle()

		Expect(w.gone(late)).To(BeTrue())
	})
})

var _ = Describe("A deleted claim", func() {
	It("that is gone, and that the cache still shows, has nothing made to be removed", func() {
		w, in, claim := halfMadeInFirst()
		w.delete(claim)
		shown := w.read(claim).DeepCopy()
		w.settle()
		Expect(w.gone(claim)).To(BeTrue())

		w.views.claims.Client = stale{w, []client.Object{shown}}
		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(shown))

		Expect(in.first.Len()).To(BeZero())
	})
})

// stores are what the StorageBackends first and second hold.
type stores struct{ first, second *fake.Backend }

// halfMadeInFirst is a world with a claim that the first of two backends has begun a
// volume for, of which there is no record.
func halfMadeInFirst() (w *world, in stores, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w, in, claim = newWorld(reconciler.ClusterScope), stores{fake.New(), fake.New()}, Claim(InClass("by-hand"))
	w.serve(byName{"first": in.first, "second": in.second})
	w.create(LocalBackend("first"), LocalBackend("second"),
		Class("by-hand", stowagev1alpha1.LocalDriver, map[string]string{"backend": "first"}))
	w.settle()
	w.halfMake(claim)
	w.get(claim)
	return w, in, claim
}

func (w *world) makeClassAnew(naming string) {
	GinkgoHelper()
	w.delete(Class("by-hand", stowagev1alpha1.LocalDriver, nil))
	w.create(Class("by-hand", stowagev1alpha1.LocalDriver, map[string]string{"backend": naming}))
}

// settleBut settles while a backend is at work.
func (w *world) settleBut(busy *fake.Backend) {
	GinkgoHelper()
	for range 4 {
		busy.FailNext(backend.InProgress.Errorf("wait"))
		_ = w.round()
	}
}

// lateVolume is the volume object that was about to be created for a claim.
func lateVolume(w *world, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	GinkgoHelper()
	scope := &step.Scope{Claim: w.read(claim).DeepCopy()}
	scope.Class = Class("by-hand", stowagev1alpha1.LocalDriver, map[string]string{"backend": "first"})
	request := provisioning.RequestFrom(scope.Claim)
	pv := provisioning.NewVolume(scope, LocalBackend("first"), request, &backend.Volume{Handle: request.ID, Capacity: request.Capacity})
	Expect(binder.TiedTo(pv, scope.Claim)).To(BeTrue())
	return pv
}
