package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("Recycling on a node that is interrupted", func() {
	const writes = 6
	for _, kind := range []fault{lost, unanswered, contended} {
		for number := range writes {
			It("goes on when write "+string(rune('1'+number))+" is "+string(kind), func() {
				w, agent, pv := recyclingOnNode()
				w.delete(Claim())
				w.faults = map[int]fault{w.written + number: kind}
				for range 3 {
					_ = w.round()
					agent.act()
				}
				w.restart()

				agent.settle()

				expectPhase(w, pv, corev1.VolumeAvailable)
				Expect(agent.files).To(BeEmpty())
				Expect(w.all(&stowagev1alpha1.NodeRecyclingList{})).To(BeEmpty())
			})
		}
	}

	DescribeTable("keeps the data when, after the agent was asked,",
		func(change func(*world, *corev1.PersistentVolume)) {
			w, agent, pv := recyclingOnNode()
			w.delete(Claim())
			w.settle()
			Expect(agent.act()).To(BeTrue())
			change(w, pv)

			agent.settle()

			Expect(agent.files).To(HaveKey(scratch))
		},
		Entry("its policy is changed", func(w *world, pv *corev1.PersistentVolume) { update(w, pv, retain) }),
		Entry("it is deleted", func(w *world, pv *corev1.PersistentVolume) { w.delete(pv) }),
		Entry("it is deleted, and made again under the same name", func(w *world, pv *corev1.PersistentVolume) {
			update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
			w.delete(pv)
			w.create(Volume(pv.Name, inDirectory(scratch), OnNode("n1"), Reclaimed(corev1.PersistentVolumeReclaimRecycle)))
		}),
		Entry("a person gives it to another claim", func(w *world, pv *corev1.PersistentVolume) { update(w, pv, ReservedTo("next")) }),
		Entry("another volume comes to stand for its directory", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("twin", inDirectory(scratch), OnNode("n1")))
		}),
		Entry("a pod comes that names its claim", func(w *world, _ *corev1.PersistentVolume) { w.create(Pod("user", "n1", Claim().Name)) }),
	)

	It("approves of nothing that changed while the agent asked", func() {
		w, agent, _ := recyclingOnNode()
		w.delete(Claim())
		w.settle()
		w.views.volumes.live.Reader = &passing{Reader: w, after: 1, do: func() {
			w.create(Volume("twin", inDirectory(scratch), OnNode("n1")))
			agent.act()
		}}
		_ = w.round()
		agent.settle()
		Expect(agent.asked).NotTo(BeZero())
		Expect(agent.files).To(HaveKey(scratch))
	})

	It("takes back what it approved when the policy is changed", func() {
		w, agent, pv := recyclingOnNode()
		w.delete(Claim())
		w.settle()
		agent.act()
		w.settle()
		update(w, pv, retain)

		w.settle()

		Expect(w.all(&stowagev1alpha1.NodeRecyclingList{})).To(BeEmpty())
	})

	It("takes no earlier answer for one to what was written to the volume since", func() {
		w, agent, pv := recyclingOnNode()
		w.delete(Claim())
		w.settle()
		agent.act()
		w.settle()
		agent.act()
		agent.files[scratch] = "of who had the volume meanwhile"
		update(w, pv, Labelled("example.com/changed", "yes"))

		agent.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(agent.files).To(BeEmpty())
	})

	It("takes back what was asked for a volume that is gone", func() {
		w, _, pv := recyclingOnNode()
		w.delete(Claim())
		w.settle()
		update(w, pv, func(pv *corev1.PersistentVolume) { pv.Finalizers = nil })
		w.delete(pv)
		w.settle()
		Expect(w.all(&stowagev1alpha1.NodeRecyclingList{})).To(BeEmpty())
	})

	DescribeTable("by another leader leaves what the next claim wrote, when the first is late",
		func(asked bool, read int) {
			w, agent, pv := recyclingOnNode()
			forceDelete(w, Claim())
			if asked {
				w.settle()
				agent.act()
			}
			first := w.volumes
			late := &passing{Reader: w, after: read, do: func() {
				w.restart()
				agent.settle()
				expectPhase(w, pv, corev1.VolumeAvailable)
				w.create(Claim(ClaimNamed("next"), InClass("")))
				w.settle()
				agent.files[scratch] = "of the next claim"
			}}
			w.views.volumes.live.Reader = late

			for range 3 {
				_, _ = first.Reconcile(GinkgoT().Context(), wake.Request(pv))
				agent.act()
			}

			agent.settle()
			Expect(late.do).To(BeNil())
			Expect(agent.files).To(HaveKeyWithValue(scratch, "of the next claim"))
			expectBound(w, Claim(ClaimNamed("next")), pv)
			Expect(w.all(&stowagev1alpha1.NodeRecyclingList{})).To(BeEmpty())
		},
		Entry("to ask the agent", false, 1),
		Entry("to approve", true, 2),
	)
})

// passing does something once, after so many listings of StorageBackends: the last of
// what a decision reads.
type passing struct {
	client.Reader
	after int
	do    func()
}

func (p *passing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := p.Reader.List(ctx, list, options...)
	if _, isLast := list.(*stowagev1alpha1.StorageBackendList); isLast {
		p.after--
		if p.after == 0 {
			once(&p.do)
		}
	}
	return err
}
