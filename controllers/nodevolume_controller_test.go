package controllers

import (
	"cmp"
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// nodeVolume is a NodeVolume as the backend makes it.
func nodeVolume(name, node string) *stowagev1alpha1.NodeVolume {
	return &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pvc-1", Labels: map[string]string{stowagev1alpha1.BackendLabel: name},
			Finalizers: []string{stowagev1alpha1.NodeVolumeFinalizer},
		},
		Spec: stowagev1alpha1.NodeVolumeSpec{
			NodeName: node, Backend: name, Path: "/var/lib/stowage/fast", Capacity: resource.MustParse("1Gi"), RemoveData: true,
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: Namespace, Name: "data", UID: "1"},
		},
	}
}

func (w *world) removeFinalizers(object client.Object) {
	GinkgoHelper()
	before := object.DeepCopyObject().(client.Object)
	object.SetFinalizers(nil)
	Expect(w.direct.Patch(context.Background(), object, client.MergeFrom(before))).To(Succeed())
}

// stranded is a volume that is to be removed, on a node that is gone.
func stranded(policy stowagev1alpha1.NodeGone) (*world, *stowagev1alpha1.NodeVolume) {
	GinkgoHelper()
	w, volume := newWorld(reconciler.ClassesScope), nodeVolume("fast", "node-a")
	w.create(volume, LocalBackend("fast", func(object *stowagev1alpha1.StorageBackend) { object.Spec.Local.NodeGone = policy }))
	volume.Status.Path = "/var/lib/stowage/fast/pvc-1"
	meta.SetStatusCondition(&volume.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.ProvisionedCondition, Status: metav1.ConditionTrue, Reason: stowagev1alpha1.ReasonReady,
	})
	Expect(w.direct.Status().Update(context.Background(), volume)).To(Succeed())
	w.delete(volume)
	return w, volume
}

// pass passes once over a volume.
func (w *world) pass(volume *stowagev1alpha1.NodeVolume) reconcile.Result {
	GinkgoHelper()
	result, err := w.locals.Reconcile(w.logging(), wake.Request(volume))
	Expect(err).NotTo(HaveOccurred())
	return result
}

var afterAnHour = stowagev1alpha1.NodeGone{Policy: stowagev1alpha1.NodeGoneForget, After: &metav1.Duration{Duration: time.Hour}}

var _ = Describe("A local volume that is to be removed, on a node that is gone", func() {
	It("waits, and says what to do", func() {
		w, volume := stranded(stowagev1alpha1.NodeGone{})
		w.pass(volume)
		w.clock.SetTime(w.clock.Now().Add(1000 * time.Hour))
		w.pass(volume)

		w.get(volume)
		gone := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.NodeGoneCondition)
		Expect(gone.Message).To(And(ContainSubstring("bring the node back"), ContainSubstring("policy Forget"), ContainSubstring("remove the finalizer")))
		Expect(w.newEvents()).To(ConsistOf(HavePrefix("Warning NodeGone node node-a isn't part of the cluster")))
	})

	It("is released after its backend's time, also by another manager, and an event names the data that stays", func() {
		w, volume := stranded(afterAnHour)
		Expect(w.pass(volume).RequeueAfter).To(BeNumerically("~", time.Hour, 2*time.Second))
		w.restart()
		w.clock.SetTime(w.clock.Now().Add(59 * time.Minute))
		Expect(w.pass(volume).RequeueAfter).To(BeNumerically("~", time.Minute, 2*time.Second))
		Expect(w.gone(volume)).To(BeFalse())

		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		w.pass(volume)
		Expect(w.gone(volume)).To(BeTrue())
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("its data stays in /var/lib/stowage/fast/pvc-1 on that node's disk")))
	})

	It("is left to its node's agent when the node is back, and counted from the start when it goes again", func() {
		w, volume := stranded(afterAnHour)
		w.pass(volume)
		w.create(Node("node-a"))
		w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
		w.pass(volume)
		w.get(volume)
		Expect(meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.NodeGoneCondition)).To(BeNil())

		w.delete(Node("node-a"))
		w.pass(volume)
		Expect(w.gone(volume)).To(BeFalse())
	})

	It("is never released because a cache doesn't know its node, nor because the node isn't Ready", func() {
		w, volume := stranded(afterAnHour)
		node := Node("node-a")
		node.Status.Conditions[0].Status = corev1.ConditionUnknown
		w.create(node)
		w.views.locals.Client = withoutNodes{w}
		w.pass(volume)
		w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
		w.pass(volume)
		Expect(w.gone(volume)).To(BeFalse())
	})

	It("is released at once if it was never created", func() {
		w, volume := newWorld(reconciler.ClassesScope), nodeVolume("fast", "node-a")
		w.create(volume, LocalBackend("fast"))
		w.delete(volume)
		w.pass(volume)
		Expect(w.gone(volume)).To(BeTrue())
	})

	It("stays if its data is not to be removed", func() {
		w, volume := newWorld(reconciler.ClassesScope), nodeVolume("fast", "node-a")
		volume.Spec.RemoveData = false
		w.create(volume, LocalBackend("fast"))
		w.delete(volume)
		w.pass(volume)
		Expect(w.gone(volume)).To(BeFalse())
	})

	DescribeTable("is released in the end though a write", func(happens fault) {
		for write := range 2 {
			w, volume := stranded(afterAnHour)
			w.faults = map[int]fault{write: happens}
			for range 3 {
				_, _ = w.locals.Reconcile(context.Background(), wake.Request(volume))
				w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
				w.restart()
			}
			Expect(w.gone(volume)).To(BeTrue(), "write %d", write)
			w.empty()
		}
	}, Entry("is lost", lost), Entry("isn't answered", unanswered), Entry("is contended", contended))
})

var _ = Describe("Data that a person has removed under a bound claim", func() {
	underClaim := func(change ...func(*corev1.PersistentVolume)) (*world, *stowagev1alpha1.NodeVolume) {
		w, volume := newWorld(reconciler.ClassesScope), nodeVolume("fast", "node-a")
		claim, pv := Claim(), Volume("pvc-1", ReservedTo("data"))
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.LocalDriver, VolumeHandle: "pvc-1"},
		}
		w.create(Node("node-a"), volume, claim)
		pv.Spec.ClaimRef.UID = claim.UID
		for _, one := range change {
			one(pv)
		}
		phase := pv.Status.Phase
		w.create(pv)
		pv.Status.Phase = cmp.Or(phase, corev1.VolumeBound)
		Expect(w.direct.Status().Update(context.Background(), pv)).To(Succeed())
		w.delete(volume)
		return w, volume
	}

	It("is an event on the claim and the volume, once", func() {
		w, volume := underClaim()
		for range 3 {
			w.pass(volume)
		}
		Expect(eventsWith(w.newEvents(), "DataRemoved NodeVolume pvc-1 was deleted with spec.removeData")).To(HaveLen(2))
	})

	DescribeTable("is no news", func(change func(*corev1.PersistentVolume)) {
		w, volume := underClaim(change)
		w.pass(volume)
		Expect(eventsWith(w.newEvents(), "DataRemoved")).To(BeEmpty())
	},
		Entry("where the claim gave the volume up", func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }),
		Entry("where the volume object stands for other storage", func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "pvc-2" }),
		Entry("where another driver has it", func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other.example.com" }),
	)
})
