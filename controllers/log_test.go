package controllers

import (
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var duration = regexp.MustCompile(` "took"="[0-9.msh]+"`)

// newLines returns the lines of the log since its last call, without durations.
func (w *world) newLines() []string {
	lines := w.lines
	w.lines = nil
	for i, line := range lines {
		lines[i] = duration.ReplaceAllString(line, "")
	}
	return lines
}

var _ = Describe("The log", func() {
	It("has one line for each effect on a claim and its volume, with the same keys", func() {
		w, claim, pv := madeVolumeOf()
		about := `"claim"="` + claim.Namespace + "/" + claim.Name + `" "volume"="` + pv.Name + `" "backend"="disks"`
		Expect(w.newLines()).To(ConsistOf(
			HavePrefix(`"level"=0 "msg"="provisioned" `+about+` "reason"="ProvisioningSucceeded"`),
			`"level"=0 "msg"="bound" `+about,
		))

		w.delete(claim)
		w.settle()

		Expect(w.newLines()).To(ConsistOf(
			`"level"=0 "msg"="released" `+about,
			HavePrefix(`"level"=0 "msg"="deleted" `+about+` "reason"="VolumeDeleted"`),
		))
	})

	It("has one line for each attach and detach", func() {
		w, pv, node := clouded(reconciler.ClusterScope)
		w.newLines()
		attachment := attachmentTo(node.Name, pv)
		about := ` "claim"="` + pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name + `" "volume"="` + pv.Name + `" "backend"="cloud" "node"="node-1"`
		w.create(attachment)
		w.settle()
		Expect(w.newLines()).To(ConsistOf(`"level"=0 "msg"="attached"` + about))

		w.delete(attachment)
		w.settle()

		Expect(w.newLines()).To(ConsistOf(`"level"=0 "msg"="detached"` + about))
	})

	It("has a line for a detach by force, and why", func() {
		w, attachment, pv := attached(forcing("1m"))
		updateNode(w, firstNode(w), together(using(pv), silentFor(w, time.Hour)))
		w.newLines()
		w.delete(attachment)

		w.settle()

		Expect(w.newLines()).To(ConsistOf(
			And(HavePrefix(`"level"=0 "msg"="forced" "volume"="`+pv.Name+`" "node"="node-1"`), ContainSubstring("has not released it")),
			HavePrefix(`"level"=0 "msg"="detached"`),
		))
	})

	It("has a failure once, however often it is retried", func() {
		w := newWorld(reconciler.ClusterScope)
		w.create(LocalBackend("disks"), Claim(InClass("disks")))
		w.storage.FailNext(backend.Exhausted.Errorf("full"), backend.Exhausted.Errorf("full"), backend.Exhausted.Errorf("full"))

		for range 3 {
			_ = w.round()
		}

		Expect(w.newLines()).To(ContainElement(And(HavePrefix(`"level"=0 "msg"="warning" "claim"=`), ContainSubstring("full"))))
		w.storage.FailNext(backend.Exhausted.Errorf("full"))
		_ = w.round()
		Expect(w.newLines()).To(BeEmpty())
	})

	It("has no line for passes over a cluster in which nothing changes", func() {
		w, _, _ := attached()
		w.newLines()

		for range 3 {
			Expect(w.round()).To(Succeed())
			w.passTime(time.Minute)
		}

		Expect(w.newLines()).To(BeEmpty())
	})

	It("has no line for passes over a node whose pods stay", func() {
		w := newNodeWorld()
		node, _, _ := w.running("data")
		Expect(w.newLines()).To(ContainElement(ContainSubstring(`"msg"="attachment created"`)))

		for range 3 {
			Expect(w.reconcile(node.Name)).To(Succeed())
			w.passTime(time.Minute)
		}

		Expect(w.newLines()).To(BeEmpty())
	})

	It("has no line for passes over disks whose room stays, nor over a volume that was adopted", func() {
		w, pv := adoptable()
		w.adopt(pv)
		Expect(w.newLines()).To(ContainElement(ContainSubstring(`"msg"="adopted"`)))
		w.lookAtDisks()
		w.newLines()

		for range 3 {
			w.passTime(time.Minute)
			w.lookAtDisks()
			w.adopt(pv)
			w.pass(w.lostVolume())
		}

		Expect(w.newLines()).To(BeEmpty())
	})

	It("has one line for a volume whose node is gone, however often it is looked at", func() {
		w, volume := stranded(afterAnHour)
		w.pass(volume)
		Expect(w.newLines()).To(ConsistOf(And(HavePrefix(`"level"=0 "msg"="warning"`), ContainSubstring("NodeGone"))))

		for range 3 {
			w.passTime(time.Minute)
			w.pass(volume)
		}

		Expect(w.newLines()).To(BeEmpty())
	})
})
