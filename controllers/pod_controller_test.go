package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A pod's generic ephemeral volume", func() {
	It("gets a claim that the pod owns, before the pod has a node", func() {
		w := newWorld(reconciler.ClusterScope)
		pod := scratchPod()
		w.create(pod)

		w.reconcilePod(pod)

		claim := Claim(ClaimNamed("worker-scratch"))
		w.get(claim)
		Expect(metav1.IsControlledBy(claim, pod)).To(BeTrue())
		Expect(claim.Labels).To(HaveKeyWithValue("tier", "scratch"))
		Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
	})

	It("does not take a claim of that name which is not the pod's", func() {
		w := newWorld(reconciler.ClusterScope)
		pod, foreign := scratchPod(), Claim(ClaimNamed("worker-scratch"))
		w.create(foreign, pod)

		for range 3 {
			w.reconcilePod(pod)
		}

		w.get(foreign)
		Expect(foreign.OwnerReferences).To(BeEmpty())
		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("FailedBinding volume scratch needs a claim named worker-scratch, which exists")))
	})

	It("gets its claim when the claim that had the name is gone", func() {
		w := newWorld(reconciler.ClusterScope)
		pod, foreign := scratchPod(), Claim(ClaimNamed("worker-scratch"))
		w.create(foreign, pod)
		w.reconcilePod(pod)

		w.delete(foreign)
		w.settle()
		w.reconcilePod(pod)

		claim := Claim(ClaimNamed("worker-scratch"))
		w.get(claim)
		Expect(metav1.IsControlledBy(claim, pod)).To(BeTrue())
	})

	It("gets its claim although another of the pod's can't be made, which one event reports", func() {
		w := newWorld(reconciler.ClusterScope)
		pod := scratchPod()
		pod.Spec.Volumes = append(pod.Spec.Volumes, *pod.Spec.Volumes[0].DeepCopy())
		pod.Spec.Volumes[1].Name = "second"
		w.create(pod)
		w.faults = map[int]fault{w.written: lost}

		_, err := w.pods.Reconcile(GinkgoT().Context(), wake.Request(pod))

		Expect(err).To(MatchError(errInjected))
		Expect(w.gone(Claim(ClaimNamed("worker-second")))).To(BeFalse())
		Expect(w.newEvents()).To(ConsistOf(ContainSubstring("FailedBinding creating claim default/worker-scratch")))
	})

	It("is nothing to a claim that something else named Pod owns", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		claim.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "example.com/v1", Kind: "Pod", Name: "worker", UID: "1", Controller: ptr.To(true),
		}}
		w.create(claim)

		w.reconcilePod(scratchPod())

		w.get(claim)
		Expect(claim.DeletionTimestamp).To(BeNil())
	})

	It("loses its claim when the pod is gone", func() {
		w := newWorld(reconciler.ClusterScope)
		pod := scratchPod()
		w.create(pod)
		w.reconcilePod(pod)

		w.delete(pod)
		w.reconcilePod(pod)
		w.settle()

		Expect(w.gone(Claim(ClaimNamed("worker-scratch")))).To(BeTrue())
	})

	It("keeps its claim when the cache has lost sight of the pod", func() {
		w := newWorld(reconciler.ClusterScope)
		pod := scratchPod()
		w.create(pod)
		w.reconcilePod(pod)

		w.views.pods.Client = withoutPods{w}
		w.reconcilePod(pod)

		Expect(w.gone(Claim(ClaimNamed("worker-scratch")))).To(BeFalse())
	})

	It("loses the claim of an earlier pod of the same name, and then gets its own", func() {
		w := newWorld(reconciler.ClusterScope)
		old := scratchPod()
		w.create(old)
		w.reconcilePod(old)
		w.delete(old)
		w.reconcilePod(old)
		w.settle()

		pod := scratchPod()
		w.create(pod)
		w.reconcilePod(pod)

		claim := Claim(ClaimNamed("worker-scratch"))
		w.get(claim)
		Expect(metav1.IsControlledBy(claim, pod)).To(BeTrue())
	})
})

func scratchPod() *corev1.Pod {
	pod := Pod("worker", "")
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tier": "scratch"}},
			Spec:       Claim().Spec,
		}},
	}}}
	return pod
}

func (w *world) reconcilePod(pod *corev1.Pod) {
	GinkgoHelper()
	_, err := w.pods.Reconcile(GinkgoT().Context(), wake.Request(pod))
	Expect(err).NotTo(HaveOccurred())
}
