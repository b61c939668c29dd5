package controllers

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	storagebackendaudit "github.com/stowage-dev/stowage/controllers/storagebackend/audit"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An audit", func() {
	It("finds nothing amiss where every volume is recorded", func() {
		w, _, _ := madeVolumeOf()
		w.passTime(time.Hour)

		w.settle()

		Expect(w.audit().Orphans).To(BeEmpty())
		Expect(w.audit().LostVolumes).To(BeEmpty())
		Expect(w.backend().Status.Orphans).To(Equal(ptr.To(int32(0))))
	})

	It("finds storage of a claim that was force-deleted past its finalizer", func() {
		w, orphan := orphaned()

		w.passTime(time.Hour)
		w.settle()

		Expect(w.backend().Status.Orphans).To(Equal(ptr.To(int32(1))))
		Expect(storagebackendaudit.HeldAs(w.audit().Orphans[0])).To(Equal(orphan))
		Expect(eventsWith(w.newEvents(), "OrphansFound")).To(ConsistOf(ContainSubstring(orphan.ID)))
	})

	It("reports an orphan once, whichever manager leads", func() {
		w, _ := orphaned()
		w.passTime(time.Hour)
		w.settle()
		w.restart()

		w.passTime(time.Hour)
		w.settle()

		Expect(eventsWith(w.newEvents(), "OrphansFound")).To(BeEmpty())
	})

	It("finds volumes without storage", func() {
		w, _, pv := madeVolumeOf()
		w.storage.Lose(pv.Name)

		w.passTime(time.Hour)
		w.settle()

		Expect(w.backend().Status.LostVolumes).To(Equal(ptr.To(int32(1))))
		Expect(w.audit().LostVolumes).To(Equal([]string{pv.Name}))
		Expect(eventsWith(w.newEvents(), "VolumesLost")).To(ConsistOf(And(ContainSubstring("no storage is found of "+pv.Name), Not(ContainSubstring("gone of")))))
	})

	It("finds what is on a node without a record, and names the node", func() {
		w, orphan := orphaned()
		w.storage.LoseRecord(orphan.ID, "node-a")

		w.passTime(time.Hour)
		w.settle()

		Expect(w.audit().Orphans).To(HaveLen(1))
		Expect(w.audit().Orphans[0].NodeName).To(Equal("node-a"))
		Expect(w.audit().Orphans[0].ID).To(Equal(orphan.ID))
	})

	It("reports no volume as lost that is on a node without a record", func() {
		w, _, pv := madeVolumeOf()
		w.storage.LoseRecord(pv.Name, "node-a")

		w.passTime(time.Hour)
		w.settle()

		Expect(w.audit().LostVolumes).To(BeEmpty())
		Expect(w.audit().Orphans).To(BeEmpty())
	})

	It("takes nothing for lost that a person recorded, or that is being deleted", func() {
		w, claim, pv := madeVolumeOf()
		w.create(Volume("by-hand", inBackend("disks")))
		w.storage.Lose(pv.Name)
		w.delete(claim)
		w.delete(pv)

		w.passTime(time.Hour)
		_ = w.round()

		Expect(w.audit().LostVolumes).To(BeEmpty())
	})

	It("reports nothing as an orphan that is being created", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks"))
		w.settle()
		w.halfMake(claim)

		w.passTime(time.Hour)
		_, err := w.audits.Reconcile(GinkgoT().Context(), wake.Request(LocalBackend("disks")))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.audit().Orphans).To(BeEmpty())
	})

	It("does not believe a cache that has not seen the volume", func() {
		w, _, pv := madeVolumeOf()
		w.views.audits.Client = withoutVolume{w, pv.Name}

		w.passTime(time.Hour)
		w.settle()

		Expect(w.audit().Orphans).To(BeEmpty())
	})

	It("does not believe a cache that still shows a volume", func() {
		w, claim, pv := madeVolumeOf()
		w.delete(claim)
		w.settle()
		Expect(w.gone(pv)).To(BeTrue())
		w.views.audits.Client = showing{w, pv}

		w.passTime(time.Hour)
		w.settle()

		Expect(w.audit().LostVolumes).To(BeEmpty())
	})

	It("waits for its time, and begins at once when the spec makes it due", func() {
		w, _ := orphaned()
		w.passTime(time.Hour - time.Second)
		w.settle()
		Expect(w.audit().Orphans).To(BeEmpty())

		object := LocalBackend("disks")
		update(w, object, func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Audit.Interval = metav1.Duration{Duration: time.Minute}
		})
		w.settle()

		Expect(w.audit().Orphans).To(HaveLen(1))
	})

	It("says once that the storage did not answer, and keeps what it knew", func() {
		w, orphan := orphaned()
		w.passTime(time.Hour)
		w.settle()
		w.serve(byName{"disks": silent{w.storage}})

		w.passTime(time.Hour)
		w.settle()
		w.settle()

		Expect(eventsWith(w.newEvents(), "AuditFailed")).To(HaveLen(1))
		Expect(w.audit().Orphans).To(ConsistOf(HaveField("ID", orphan.ID)))
	})

	It("names what it finds first, and counts the rest", func() {
		w := newWorld(reconciler.ClusterScope)
		w.create(LocalBackend("disks"))
		for i := range storagebackendaudit.MaxListed + 1 {
			w.hold(heldFor(i))
		}

		w.settle()

		Expect(w.backend().Status.Orphans).To(Equal(ptr.To(int32(storagebackendaudit.MaxListed + 1))))
		Expect(w.audit().Orphans).To(HaveLen(storagebackendaudit.MaxListed))
		Expect(eventsWith(w.newEvents(), "OrphansFound")).To(ConsistOf(ContainSubstring("and 98 more")))
	})
})

var _ = Describe("The capacity of a backend", func() {
	It("is what its storage reports, in whole MiB", func() {
		w := newWorld(reconciler.ClusterScope)
		w.storage.SetSpace(backend.Space{Total: size("10Gi"), Used: size("1073741825")})
		w.create(LocalBackend("disks"))

		w.settle()

		capacity := w.backend().Status.Capacity
		Expect(capacity.Total.String()).To(Equal("10Gi"))
		Expect(capacity.Used.String()).To(Equal("1Gi"))
	})

	It("is left out if the storage cannot report it", func() {
		w := newWorld(reconciler.ClusterScope)
		w.serve(byName{"disks": struct{ backend.Backend }{w.storage}})
		w.create(LocalBackend("disks"))

		w.settle()

		Expect(w.backend().Status.Capacity).To(BeNil())
		Expect(w.backend().Status.Audit).To(BeNil())
	})
})

// orphaned is a world at rest, with storage that was made for a claim which a user
// then force-deleted.
func orphaned() (*world, backend.Held) {
	GinkgoHelper()
	w := newWorld(reconciler.ClusterScope)
	claim := Claim(InClass("disks"))
	w.create(LocalBackend("disks"))
	w.settle()
	w.halfMake(claim)
	w.forceDelete(claim)
	w.settle()
	Expect(w.storage.Has(provisioned.VolumeID(claim))).To(BeTrue())
	return w, backend.Held{ID: provisioned.VolumeID(claim), Claim: provisioning.RequestFrom(claim).Claim}
}

// forceDelete deletes an object past its finalizers.
func (w *world) forceDelete(object client.Object) {
	GinkgoHelper()
	w.delete(object)
	update(w, object, func(object client.Object) { object.SetFinalizers(nil) })
	Expect(w.gone(object)).To(BeTrue())
}

func (w *world) passTime(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// backend is the StorageBackend disks as it is now.
func (w *world) backend() *stowagev1alpha1.StorageBackend {
	GinkgoHelper()
	object := LocalBackend("disks")
	w.get(object)
	return object
}

func (w *world) audit() *stowagev1alpha1.AuditStatus {
	GinkgoHelper()
	audit := w.backend().Status.Audit
	Expect(audit).NotTo(BeNil())
	return audit
}

// hold has the storage hold a volume of which the cluster knows nothing.
func (w *world) hold(held backend.Held) {
	GinkgoHelper()
	_, err := w.storage.Provision(context.Background(), backend.Request{ID: held.ID, Claim: held.Claim, Capacity: size("1Gi")})
	Expect(err).NotTo(HaveOccurred())
}

// silent is storage that can't be listed.
type silent struct{ *fake.Backend }

func (silent) List(context.Context) ([]backend.Held, error) {
	return nil, backend.Unavailable.Errorf("no answer")
}
