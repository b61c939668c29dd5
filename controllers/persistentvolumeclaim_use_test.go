package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/uses"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("The condition Unused of a bound claim", func() {
	It("comes with the write that binds it, and is True without a pod", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		w.create(Volume("v"))
		w.settle()
		w.create(claim)

		before := w.written
		w.settle()

		expectUnused(w, claim, corev1.ConditionTrue, "NoPodsUsingPVC")
		Expect(w.written - before).To(Equal(4))
	})

	It("comes with the write that binds it, and is False where a pod waits for the claim already", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim()
		w.create(Volume("v"), Pod("user", "", "data"))
		w.settle()
		w.create(claim)

		before := w.written
		w.settle()

		expectUnused(w, claim, corev1.ConditionFalse, "PodUsingPVC")
		Expect(w.written - before).To(Equal(4))
	})

	It("follows pods as they come and go, in one write each", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pod := Claim(), Pod("user", "node-1", "data")
		w.create(Volume("v"), claim)
		w.settle()

		before := w.written
		w.create(pod)
		w.settle()
		expectUnused(w, claim, corev1.ConditionFalse, "PodUsingPVC")
		w.delete(pod)
		w.settle()

		expectUnused(w, claim, corev1.ConditionTrue, "NoPodsUsingPVC")
		Expect(w.written - before).To(Equal(2))
	})

	It("is True when the only pod has finished", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pod := Claim(), Pod("user", "node-1", "data")
		w.create(Volume("v"), claim, pod)
		w.settle()

		pod.Status.Phase = corev1.PodSucceeded
		Expect(w.direct.Status().Update(GinkgoT().Context(), pod)).To(Succeed())
		w.settle()

		expectUnused(w, claim, corev1.ConditionTrue, "NoPodsUsingPVC")
	})

	It("is not touched by a pod whose ephemeral volume only has the claim's name", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(ClaimNamed("worker-scratch"))
		w.create(Volume("v"), claim, scratchPod())

		w.settle()

		expectUnused(w, claim, corev1.ConditionTrue, "NoPodsUsingPVC")
	})

	It("is left to kube-controller-manager in scope=classes", func() {
		w := newWorld(reconciler.ClassesScope)
		claim := Claim()
		w.create(claim, Pod("user", "node-1", "data"))

		w.settle()

		w.get(claim)
		Expect(claim.Status.Conditions).To(BeEmpty())
	})
})

var _ = Describe("A deleted claim of a generic ephemeral volume", func() {
	It("goes while its pod is only kept by finalizers, which may wait for the claim", func() {
		w := newWorld(reconciler.ClusterScope)
		pod, claim := scratchPod(), Claim(ClaimNamed("worker-scratch"))
		pod.Spec.NodeName, pod.Finalizers = "node-1", []string{"example.com/keep"}
		w.create(pod)
		w.reconcilePod(pod)
		w.settle()
		w.get(claim)

		w.delete(pod)
		w.delete(claim)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
	})

	It("is not protected by a pod that only wants a claim of that name", func() {
		w := newWorld(reconciler.ClusterScope)
		pod, foreign := scratchPod(), Claim(ClaimNamed("worker-scratch"))
		pod.Spec.NodeName = "node-1"
		w.create(foreign, pod)
		w.settle()

		w.delete(foreign)
		w.settle()

		Expect(w.gone(foreign)).To(BeTrue())
	})
})

var _ = Describe("A claim that is deleted while a reconcile writes its status", func() {
	It("stays for the pod that uses it", func() {
		w := newWorld(reconciler.ClusterScope)
		claim, pod := Claim(), Pod("user", "node-1", "data")
		w.create(Volume("v"), claim)
		w.settle()
		w.create(pod)

		// The write of the condition Unused. Its answer shows the deletion.
		w.faults = map[int]fault{w.written: overtaken}
		w.settle()

		w.get(claim)
		Expect(claim.DeletionTimestamp).NotTo(BeNil())
		Expect(claim.Finalizers).To(ContainElement(uses.ClaimProtection))
	})
})

var _ = DescribeTable("A change of a pod wakes its claims",
	func(change func(*corev1.Pod), wakes bool) {
		before := Pod("user", "node-1", "data")
		before.Status.Phase = corev1.PodRunning
		before.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		after := before.DeepCopy()
		change(after)
		Expect(uses.OnlyNew.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(wakes))
	},
	Entry("not when its node reports", func(pod *corev1.Pod) { pod.Status.PodIP = "192.0.2.1" }, false),
	Entry("when it is placed elsewhere", func(pod *corev1.Pod) { pod.Spec.NodeName = "node-2" }, true),
	Entry("when it ends", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }, true),
	Entry("when another took its name", func(pod *corev1.Pod) { pod.UID = "another" }, true),
)

func expectUnused(w *world, claim *corev1.PersistentVolumeClaim, status corev1.ConditionStatus, reason string) {
	GinkgoHelper()
	w.get(claim)
	Expect(claim.Status.Conditions).To(ContainElement(And(
		HaveField("Type", corev1.PersistentVolumeClaimUnused), HaveField("Status", status), HaveField("Reason", reason),
	)))
}
