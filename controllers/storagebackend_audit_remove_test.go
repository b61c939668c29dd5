package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/storagebackend/audit"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// madeByCall is the id of a volume that a CSI call made.
var madeByCall = backend.VolumeID(named.UID("cluster", "disks", "volume", "of a call"), 1)

var _ = Describe("An orphan", func() {
	It("is never removed by default", func() {
		w, orphan := orphaned()
		for range 3 {
			w.passTime(1000 * time.Hour)
			w.settle()
		}
		Expect(w.storage.Has(orphan.ID)).To(BeTrue())
	})

	It("is removed if the spec allows it, once it is old enough", func() {
		w, orphan := orphaned()
		w.removeOrphansAfter(3 * time.Hour)
		for range 3 {
			w.passTime(time.Hour)
			w.settle()
			Expect(w.storage.Has(orphan.ID)).To(BeTrue())
		}

		w.passTime(time.Hour)
		w.settle()

		Expect(w.storage.Has(orphan.ID)).To(BeFalse())
		Expect(w.audit().Orphans).To(BeEmpty())
		Expect(eventsWith(w.newEvents(), "OrphanRemoved")).To(ConsistOf(ContainSubstring(orphan.ID)))
	})

	It("is nothing that a CSI call made, though no object refers to it", func() {
		w, orphan := orphaned()
		w.removeOrphansAfter(time.Hour)
		made := backend.Held{ID: madeByCall, Claim: stowagev1alpha1.ClaimReference{
			Namespace: "csi.volumes", Name: "digest", UID: types.UID(strings.TrimPrefix(madeByCall, "pvc-")),
		}}
		w.hold(made)
		w.newEvents()
		for range 3 {
			w.passTime(time.Hour)
			w.settle()
		}

		Expect(w.storage.Has(orphan.ID)).To(BeFalse())
		Expect(w.storage.Has(madeByCall)).To(BeTrue())
		Expect(w.audit().Orphans).To(BeEmpty())
		Expect(w.audit().Retained).To(Equal(int32(1)))
		Expect(w.newEvents()).NotTo(ContainElement(ContainSubstring(madeByCall)))
	})

	It("is never removed if it is on a node without a record", func() {
		w, orphan := orphaned()
		w.removeOrphansAfter(time.Hour)
		w.storage.LoseRecord(orphan.ID, "node-a")

		for range 3 {
			w.passTime(1000 * time.Hour)
			w.settle()
		}

		Expect(w.audit().Orphans).To(HaveLen(1))
		Expect(w.audit().Orphans[0].Removing).To(BeFalse())
		Expect(w.storage.Calls()).NotTo(ContainElement("Delete " + orphan.ID))
		Expect(eventsWith(w.newEvents(), "OrphanRemoved")).To(BeEmpty())
	})

	It("gets no younger and no older by a restart", func() {
		w, orphan := orphaned()
		w.removeOrphansAfter(2 * time.Hour)
		w.passTime(time.Hour)
		w.settle()
		since := w.audit().Orphans[0].Since

		w.restart()
		w.passTime(time.Hour)
		w.settle()
		Expect(w.audit().Orphans[0].Since).To(Equal(since))
		Expect(w.storage.Has(orphan.ID)).To(BeTrue())

		w.passTime(time.Hour)
		w.settle()
		Expect(w.storage.Has(orphan.ID)).To(BeFalse())
	})

	DescribeTable("is kept",
		func(keep func(*world, backend.Held)) {
			w, orphan := orphaned()
			w.removeOrphansAfter(2 * time.Hour)
			w.passTime(time.Hour)
			w.settle()
			keep(w, orphan)

			w.passTime(1000 * time.Hour)
			w.settle()

			Expect(w.storage.Has(orphan.ID)).To(BeTrue())
		},
		Entry("when it got a PersistentVolume, of any name", func(w *world, orphan backend.Held) {
			w.create(Volume("adopted", inBackend("disks"), withHandle(orphan.ID)))
		}),
		Entry("when the spec changed its mind", func(w *world, _ backend.Held) {
			update(w, LocalBackend("disks"), func(object *stowagev1alpha1.StorageBackend) {
				object.Spec.Audit.RemoveOrphansAfter = nil
			})
		}),
		Entry("while a pod that named its claim may use it", func(w *world, orphan backend.Held) {
			w.create(Pod("user", "node-1", orphan.Claim.Name))
		}),
		Entry("when the backend is being deleted", func(w *world, _ backend.Held) {
			w.create(Volume("other", inBackend("disks")))
			w.delete(LocalBackend("disks"))
		}),
	)

	It("is kept while its claim is there, which lost its volume object", func() {
		w, claim, pv := madeVolumeOf()
		w.removeOrphansAfter(time.Hour)
		w.delete(pv)
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		for range 3 {
			w.passTime(time.Hour)
			w.settle()
		}
		Expect(w.gone(claim)).To(BeFalse())
		Expect(w.audit().Orphans).To(ConsistOf(HaveField("ID", pv.Name)))
		Expect(w.storage.Has(pv.Name)).To(BeTrue())
	})

	It("is kept when its record names a claim that its id is not of", func() {
		w := newWorld(reconciler.ClusterScope)
		strange := backend.Held{ID: "pvc-1", Claim: heldFor(2).Claim}
		w.create(LocalBackend("disks"))
		w.hold(strange)
		w.settle()
		w.removeOrphansAfter(time.Hour)
		for range 3 {
			w.passTime(time.Hour)
			w.settle()
		}
		Expect(w.audit().Orphans).To(ConsistOf(HaveField("ID", strange.ID)))
		Expect(w.storage.Has(strange.ID)).To(BeTrue())
	})

	It("is kept when it gets a volume object after its removal was written down", func() {
		w, orphan := due()
		w.views.audits.Client = adopting{w, Volume("adopted", inBackend("disks"), withHandle(orphan.ID))}

		w.settle()

		Expect(w.storage.Has(orphan.ID)).To(BeTrue())
	})

	It("is not removed by an auditor with a stale spec", func() {
		w, orphan := due()
		shown := w.backend()
		update(w, LocalBackend("disks"), func(object *stowagev1alpha1.StorageBackend) { object.Spec.Audit.RemoveOrphansAfter = nil })
		w.views.audits.Client = stale{w, []client.Object{shown}}

		w.settle()

		Expect(w.storage.Has(orphan.ID)).To(BeTrue())
	})

	It("is removed once by two auditors, of which one finds the other's write", func() {
		w, orphan := due()
		other := audit.New(w.dependencies(newView(w)))
		w.views.audits.Client = beforeStatus{w, func() { _, _ = other.Reconcile(context.Background(), wake.Request(LocalBackend("disks"))) }}

		w.settle()

		Expect(w.storage.Has(orphan.ID)).To(BeFalse())
		Expect(w.audit().Orphans).To(BeEmpty())
	})

	DescribeTable("is removed in the end when a write is",
		func(kind fault) {
			w, orphan := due()
			w.faults = map[int]fault{w.written: kind}

			_ = w.round()
			w.restart()
			// What is removed from the storage is no write: the world seems at rest.
			_ = w.round()
			w.settle()

			Expect(w.storage.Has(orphan.ID)).To(BeFalse())
			Expect(w.audit().Orphans).To(BeEmpty())
		},
		Entry("lost", lost), Entry("unanswered", unanswered), Entry("contended", contended),
	)

	It("is removed by a backend that takes its time, without another word", func() {
		w, orphan := due()
		w.serve(byName{"disks": &slowStorage{Backend: w.storage}})

		w.settle()

		Expect(w.storage.Has(orphan.ID)).To(BeFalse())
		recorded := w.newEvents()
		Expect(eventsWith(recorded, "OrphanRemoved")).To(HaveLen(1))
		Expect(eventsWith(recorded, "OrphanNotRemoved")).To(BeEmpty())
	})

	It("reports once why its storage does not release it", func() {
		w, orphan := due()
		w.serve(byName{"disks": unyielding{w.storage}})
		for range 5 {
			_ = w.round()
		}
		Expect(w.storage.Has(orphan.ID)).To(BeTrue())
		Expect(eventsWith(w.newEvents(), "OrphanNotRemoved")).To(ConsistOf(ContainSubstring("belongs to another cluster")))
	})
})

// due is a world with an orphan that is old enough for the next audit.
func due() (*world, backend.Held) {
	GinkgoHelper()
	w, orphan := orphaned()
	w.removeOrphansAfter(2 * time.Hour)
	w.passTime(time.Hour)
	w.settle()
	Expect(w.audit().Orphans).To(HaveLen(1))
	w.newEvents()
	w.passTime(2 * time.Hour)
	return w, orphan
}

func (w *world) removeOrphansAfter(age time.Duration) {
	GinkgoHelper()
	update(w, LocalBackend("disks"), func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Audit.RemoveOrphansAfter = &metav1.Duration{Duration: age}
	})
}

// heldFor is a volume of a claim that the cluster never saw.
func heldFor(number int) backend.Held {
	uid := types.UID(fmt.Sprintf("uid-%03d", number))
	return backend.Held{ID: backend.VolumeID(uid, 1), Claim: stowagev1alpha1.ClaimReference{Namespace: Namespace, Name: "data", UID: uid}}
}

func withHandle(handle string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = handle }
}

func size(text string) resource.Quantity { return resource.MustParse(text) }

// unyielding is storage that removes nothing.
type unyielding struct{ *fake.Backend }

func (unyielding) Delete(_ context.Context, id string) error {
	return backend.Conflict.Errorf("volume %s belongs to another cluster", id)
}

// showing is a cache whose lists still have an object.
type showing struct {
	client.Client
	object client.Object
}

func (c showing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := c.Client.List(ctx, list, options...)
	shown, unknown := c.GroupVersionKindFor(c.object)
	listed, unlisted := c.GroupVersionKindFor(list)
	if err := errors.Join(err, unknown, unlisted); err != nil || listed.Kind != shown.Kind+"List" {
		return err
	}
	items, err := meta.ExtractList(list)
	return errors.Join(err, meta.SetList(list, append(items, c.object)))
}

// beforeStatus does something before each write of a status.
type beforeStatus struct {
	client.Client
	do func()
}

func (c beforeStatus) Status() client.SubResourceWriter {
	c.do()
	return c.Client.Status()
}

// adopting gives storage a volume object right after a status was written.
type adopting struct {
	client.Client
	volume *corev1.PersistentVolume
}

func (c adopting) Status() client.SubResourceWriter {
	return adoptingWriter{c.Client.Status(), c}
}

type adoptingWriter struct {
	client.SubResourceWriter
	adopting
}

func (c adoptingWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if err := c.SubResourceWriter.Patch(ctx, object, patch, options...); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(c.Client.Create(ctx, c.volume.DeepCopy()))
}
