package controllers

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim whose volume this process began to make", func() {
	It("has it recorded without a live read of the claim and its volume", func() {
		w, claim, reads := beingMade()

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(w.read(claim))))
		Expect(reads.kinds).To(BeEmpty())
	})

	It("needs no such read however often its backend goes on", func() {
		w, _, reads := beingMade()
		for range 3 {
			w.storage.FailNext(backend.InProgress.Errorf("wait"))
			_ = w.round()
		}
		Expect(reads.kinds).To(BeEmpty())
	})

	DescribeTable("is read live",
		func(doubt func(*world, *corev1.PersistentVolumeClaim)) {
			w, claim, reads := beingMade()
			doubt(w, claim)
			w.views.claims.live.Reader = reads

			w.settle()

			expectBound(w, claim, Volume(provisioned.VolumeID(w.read(claim))))
			Expect(reads.kinds).To(ConsistOf("*v1.PersistentVolumeClaim", "*v1.PersistentVolume"))
		},
		Entry("where this process may lead no more", func(w *world, _ *corev1.PersistentVolumeClaim) { w.leads = follows }),
		Entry("where another process led since", func(w *world, _ *corev1.PersistentVolumeClaim) { w.term = "another" }),
		Entry("where this process was started since", func(w *world, _ *corev1.PersistentVolumeClaim) { w.restart() }),
		Entry("where another record than its own is on it", func(w *world, claim *corev1.PersistentVolumeClaim) {
			update(w, claim, func(claim *corev1.PersistentVolumeClaim) {
				claim.Annotations[stowagev1alpha1.ProvisioningAnnotation] += " "
			})
		}),
	)

	It("is read live where the creation of its volume had no answer, and the cache doesn't show it yet", func() {
		w, claim, reads := beingMade()
		w.faults = map[int]fault{w.written: unanswered}
		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(claim))
		made := provisioned.VolumeID(w.read(claim))
		w.views.claims.Client = withoutVolume{w, made}

		_, _ = w.claims.Reconcile(GinkgoT().Context(), wake.Request(claim))

		expectBound(w, claim, Volume(made))
		Expect(reads.kinds).To(ContainElements("*v1.PersistentVolumeClaim", "*v1.PersistentVolume"))
	})

	DescribeTable("and that is gone since, though the cache still shows it, has nothing made",
		func(doubt func(*world)) {
			w, claim, _ := beingMade()
			shown, paused, view := w.read(claim).DeepCopy(), w.claims, w.views.claims
			w.restart()
			w.delete(claim)
			w.settle()
			Expect(w.gone(claim)).To(BeTrue())
			doubt(w)

			view.Client = stale{w, []client.Object{shown}}
			_, _ = paused.Reconcile(GinkgoT().Context(), wake.Request(shown))

			Expect(w.storage.Len()).To(BeZero())
		},
		Entry("by a process that was paused, and may lead no more", func(w *world) { w.leads = follows }),
		Entry("by a process that was paused, and leads again", func(w *world) { w.term = "another" }),
	)

	for _, kind := range []fault{lost, unanswered, contended} {
		It("gets one volume whichever of the later writes is "+string(kind), func() {
			w, _, _ := beingMade()
			before := w.written
			w.settle()
			for number := range w.written - before {
				w, claim, _ := beingMade()

				w.failWrite(number, kind)
				w.settle()

				w.get(claim)
				expectBound(w, claim, Volume(claim.Spec.VolumeName))
				Expect(w.storage.Len()).To(Equal(1))
			}
		})
	}
})

// beingMade is a world with a claim whose backend goes on to make its volume, and the live reads from then on.
func beingMade() (*world, *corev1.PersistentVolumeClaim, *claimReads) {
	GinkgoHelper()
	w, claim := newWorldIn(newMemory()), Claim(InClass("disks"))
	w.create(LocalBackend("disks"))
	w.settle()
	w.create(claim)
	w.storage.FailNext(backend.InProgress.Errorf("wait"))
	_ = w.round()
	Expect(provisioned.HasIntent(w.read(claim))).To(BeTrue())
	reads := &claimReads{Reader: w.reads}
	w.views.claims.live.Reader = reads
	return w, claim, reads
}

// claimReads notes the reads of claims and of volumes.
type claimReads struct {
	client.Reader
	kinds []string
}

func (r *claimReads) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	switch object.(type) {
	case *corev1.PersistentVolumeClaim, *corev1.PersistentVolume:
		r.kinds = append(r.kinds, fmt.Sprintf("%T", object))
	}
	return r.Reader.Get(ctx, key, object, options...)
}
