package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// halfMadeInZone is a cluster whose driver made storage in a zone that has no node any more: the answer
// was lost on the way, and the manager has restarted.
func halfMadeInZone(scope reconciler.Scope, options ...func(*corev1.PersistentVolumeClaim)) (*world, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w := newCSIWorld(scope)
	w.driver.SetPlaces(zoneTopology("a"), zoneTopology("b"))
	claim := Claim(append([]func(*corev1.PersistentVolumeClaim){InClass("tiered"), requestedFrom(csiDriver)}, options...)...)
	w.create(claim)
	w.faults = map[int]fault{w.written + 3: lost}
	_ = w.round()
	Expect(w.storage.Len()).To(Equal(1))
	Expect(w.all(&corev1.PersistentVolumeList{})).To(BeEmpty())
	Expect(provisioned.PlacementOf(w.read(claim))).NotTo(BeNil())
	w.driver.SetPlaces(zoneTopology("b"))
	w.restart()
	return w, claim
}

var _ = Describe("A volume that a CSI driver may have made in a zone that is gone", func() {
	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		It("is found there by the repeat of the call, in scope="+string(scope), func() {
			w, claim := halfMadeInZone(scope)
			w.settle()

			w.get(Volume(provisioned.VolumeID(claim)))
			Expect(w.storage.Len()).To(Equal(1))
			Expect(provisioned.Records(w.read(claim))).To(HaveEach(BeEmpty()), "the volume object has the answer")
			Expect(w.read(claim).Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		})
	}

	DescribeTable("is removed from there, after its claim is deleted,",
		func(change func(*corev1.PersistentVolumeClaim)) {
			w, claim := halfMadeInZone(reconciler.ClusterScope)
			made := w.driver.Request(provisioned.VolumeID(claim))
			update(w, claim, change)
			w.delete(claim)
			w.settle()

			Expect(w.gone(claim)).To(BeTrue())
			Expect(w.storage.Len()).To(BeZero())
			Expect(w.driver.Undone()[0].Placement).To(Equal(made.Placement))
		},
		Entry("and stays where it was made", func(*corev1.PersistentVolumeClaim) {}),
		Entry("whatever a user wrote into the annotations", func(claim *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, stowagev1alpha1.ProvisioningAnnotation,
				`{"backend":"disk.example.com","attempt":1,"requisite":[{"zone":"z"}]}`)
		}),
	)

	It("is removed from there before the claim gets one for another node", func() {
		nodes := []*corev1.Node{machine("node-1"), machine("node-2")}
		w := newCSIWorld(reconciler.ClusterScope)
		waiting := Class("waiting", csiDriver, nil)
		waiting.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
		w.driver.SetPlaces(zoneTopology("a"))
		claim := Claim(InClass("waiting"), placedOn("node-1"))
		w.create(nodes[0], nodes[1], waiting, claim)
		w.faults = map[int]fault{w.written + 3: lost}
		_ = w.round()
		Expect(w.storage.Len()).To(Equal(1))

		w.driver.SetPlaces(zoneTopology("b"))
		w.restart()
		update(w, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Annotations[step.AnnSelectedNode] = "node-2" })
		w.settle()

		w.get(claim)
		Expect(provisioned.AttemptOf(claim)).To(Equal(2))
		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.storage.Len()).To(Equal(1))
		Expect(w.driver.Request(provisioned.VolumeID(claim)).Placement.Requisite).To(ConsistOf(zoneTopology("b")))
	})
})
