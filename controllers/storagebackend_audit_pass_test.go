package controllers

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("An audit of more than one call can list", func() {
	It("judges nothing before the last page", func() {
		w, pages := paged(5)
		for range 2 {
			w.auditOn()
			Expect(w.backend().Status.Audit).To(BeNil())
		}

		w.auditOn()

		Expect(w.audit().Orphans).To(HaveLen(5))
		Expect(eventsWith(w.newEvents(), "OrphansFound")).To(HaveLen(1))
		Expect(pages.requested).To(Equal([]string{"", heldFor(1).ID, heldFor(3).ID}))
	})

	It("reports nothing as lost before its page was read", func() {
		w, _, pv := madeVolumeOf()
		pages := w.servePages()
		for i := range 4 {
			w.hold(heldFor(i))
		}
		w.passTime(time.Hour)

		w.auditToEnd(pages)

		Expect(w.audit().LostVolumes).To(BeEmpty())
		Expect(w.audit().Orphans).To(HaveLen(4))
		Expect(w.storage.Has(pv.Name)).To(BeTrue())
	})

	It("finds what is lost among many pages", func() {
		w, _, pv := madeVolumeOf()
		pages := w.servePages()
		for i := range 4 {
			w.hold(heldFor(i))
		}
		w.storage.Lose(pv.Name)
		w.passTime(time.Hour)

		w.auditToEnd(pages)

		Expect(w.audit().LostVolumes).To(Equal([]string{pv.Name}))
	})

	It("reports nothing as lost that was created while pages were read", func() {
		w, pages := paged(5)
		w.auditOn()
		// The page that it would be on was read.
		Expect(pages.requested).To(Equal([]string{""}))
		w.create(Volume("pvc-0", inBackend("disks"), madeBy(stowagev1alpha1.LocalDriver)))

		w.auditToEnd(pages)

		Expect(w.audit().LostVolumes).To(BeEmpty())
		w.passTime(time.Hour)
		w.auditToEnd(pages)
		Expect(w.audit().LostVolumes).To(Equal([]string{"pvc-0"}))
	})

	It("takes nothing for an orphan that was removed while pages were read", func() {
		w, pages := paged(5)
		recorded := Volume("recorded", inBackend("disks"), withHandle(heldFor(0).ID))
		w.create(recorded)
		w.auditOn()
		w.delete(recorded)
		w.storage.Lose(heldFor(0).ID)

		w.auditToEnd(pages)

		Expect(w.audit().Orphans).To(HaveLen(4))
	})

	It("reads a page again that could not be read, and no other", func() {
		w, pages := paged(5)
		w.auditOn()
		pages.failure = backend.Unavailable.Errorf("no answer")
		w.auditOn()
		w.auditOn()
		Expect(eventsWith(w.newEvents(), "AuditFailed")).To(HaveLen(1))
		pages.failure, pages.requested = nil, nil

		w.auditToEnd(pages)

		Expect(pages.requested).To(Equal([]string{heldFor(1).ID, heldFor(3).ID}))
		Expect(w.audit().Orphans).To(HaveLen(5))
	})

	DescribeTable("begins again",
		func(inBetween func(w *world)) {
			w, pages := paged(5)
			w.auditOn()
			inBetween(w)
			pages.requested = nil
			w.serve(byName{"disks": pages})

			w.auditToEnd(pages)

			Expect(pages.requested[0]).To(BeEmpty())
			Expect(w.audit().Orphans).To(HaveLen(5))
		},
		Entry("after a restart", func(w *world) { w.restart() }),
		Entry("after it was held up for long", func(w *world) { w.passTime(2 * time.Hour) }),
		Entry("for another backend of the name", func(w *world) {
			w.delete(LocalBackend("disks"))
			w.create(LocalBackend("disks"))
		}),
	)
})

// inPages is storage of which two volumes are listed at a time.
type inPages struct {
	*fake.Backend
	requested []string
	failure   error
}

func (p *inPages) ListAfter(ctx context.Context, id string) (page []backend.Held, next string, err error) {
	const size = 2
	p.requested = append(p.requested, id)
	if p.failure != nil {
		return nil, "", p.failure
	}
	all, err := p.List(ctx)
	for i, volume := range all {
		if volume.ID <= id {
			continue
		}
		page = append(page, volume)
		if len(page) == size && i+1 < len(all) {
			return page, volume.ID, nil
		}
	}
	return page, "", err
}

// paged is a world with storage that holds volumes without a record.
func paged(orphans int) (*world, *inPages) {
	GinkgoHelper()
	w := newWorld(reconciler.ClusterScope)
	w.create(LocalBackend("disks"))
	for i := range orphans {
		w.hold(heldFor(i))
	}
	pages := w.servePages()
	return w, pages
}

func (w *world) servePages() *inPages {
	pages := &inPages{Backend: w.storage}
	w.serve(byName{"disks": pages})
	return pages
}

// auditOn has the auditor do one thing.
func (w *world) auditOn() {
	GinkgoHelper()
	_, err := w.audits.Reconcile(context.Background(), wake.Request(LocalBackend("disks")))
	Expect(err).NotTo(HaveOccurred())
}

// auditToEnd has it read to the last page.
func (w *world) auditToEnd(pages *inPages) {
	GinkgoHelper()
	before := w.backend().Status.Audit
	for range 10 {
		w.auditOn()
		if after := w.backend().Status.Audit; after != nil && (before == nil || after.Time != before.Time) {
			return
		}
	}
	Fail("the audit doesn't end: " + pages.requested[len(pages.requested)-1])
}
