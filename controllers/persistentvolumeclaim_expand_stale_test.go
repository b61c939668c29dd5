package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A leader that sees an earlier cluster", func() {
	var (
		w       *world
		claim   *corev1.PersistentVolumeClaim
		earlier []client.Object
	)
	BeforeEach(func() {
		w = newWorld(reconciler.ClusterScope)
		claim = w.boundClaim()
		w.storage.FailNext(backend.InProgress.Errorf("resizing"))
		update(w, claim, Asking("2Gi"))
		_ = w.round()
		earlier = []client.Object{w.volumeOf(claim).DeepCopy(), w.read(claim).DeepCopy()}
	})

	// reconcileThere runs the claims' reconciler once, as that leader does.
	reconcileThere := func() {
		w.views.claims.Client = stale{w, earlier}
		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(earlier[1]))
		w.views.claims.Client = w
	}

	It("takes nothing back from a claim that has grown further since", func() {
		w.settle()
		w.requestSize(claim, "3Gi")
		calls := len(w.expansions())

		reconcileThere()

		expectExpanded(w, claim, "3Gi")
		Expect(w.expansions()).To(HaveLen(calls))
	})

	It("grows nothing for a claim that is gone", func() {
		w.delete(claim)
		w.settle()
		calls := len(w.expansions())

		reconcileThere()

		Expect(w.expansions()).To(HaveLen(calls))
	})

	It("grows nothing for a claim that is gone and whose volume was kept", func() {
		update(w, w.volumeOf(claim), Reclaimed(corev1.PersistentVolumeReclaimRetain))
		w.delete(claim)
		w.settle()
		calls := len(w.expansions())

		reconcileThere()

		Expect(w.expansions()).To(HaveLen(calls))
	})

	It("grows nothing for another claim of the name, and writes nothing to it", func() {
		w.delete(claim)
		w.settle()
		next := Claim(InClass("disks"))
		w.create(next)
		w.settle()
		calls := len(w.expansions())

		reconcileThere()

		Expect(w.expansions()).To(HaveLen(calls))
		Expect(w.read(next).Status.AllocatedResources).To(BeEmpty())
		Expect(w.volumeOf(next).Spec.Capacity.Storage().String()).To(Equal("1Gi"))
	})

	It("grows nothing in a volume that is another claim's now", func() {
		update(w, w.volumeOf(claim), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" })
		calls := len(w.expansions())

		reconcileThere()

		Expect(w.expansions()).To(HaveLen(calls))
	})

	It("and one that sees this one, both at work in turn, grow the claim's volume once", func() {
		for range 3 {
			reconcileThere()
			_ = w.round()
		}
		expectExpanded(w, claim, "2Gi")
	})
})
