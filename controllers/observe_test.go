package controllers

import (
	"context"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
)

var _ = Describe("A cloud that does not answer what became of a machine", func() {
	It("is named in the log by the reconciler of nodes", func() {
		w, _, node := nodeUsingDisk()
		w.becomesNotReady(node)
		w.storage.FailObserving(backend.Unavailable.Errorf("503 of the cloud"))

		logged := logOf(func(ctx context.Context) { _, _ = w.nodes.Reconcile(ctx, wake.Request(node)) })

		Expect(logged).To(ConsistOf(ContainSubstring("503 of the cloud")))
		Expect(w.attachmentsOf("node-1")).To(HaveExactElements(HaveField("DeletionTimestamp", BeNil())))
	})

	It("is named in the log by the reconciler of attachments", func() {
		w, attachment, pv := attached(forcing("Never"))
		updateNode(w, firstNode(w), together(using(pv), silentFor(w, 0)))
		w.delete(attachment)
		w.storage.FailObserving(backend.Unavailable.Errorf("503 of the cloud"))

		logged := logOf(func(ctx context.Context) { _, _ = w.attachments.Reconcile(ctx, wake.Request(attachment)) })

		Expect(logged).To(ConsistOf(ContainSubstring("503 of the cloud")))
		expectStays(w, attachment, pv, "not Ready")
	})
})

// logOf is what is logged at the default verbosity.
func logOf(do func(context.Context)) (lines []string) {
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	do(ctrl.LoggerInto(GinkgoT().Context(), log))
	return lines
}
