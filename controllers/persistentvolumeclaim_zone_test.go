package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim that was placed in a zone that its class doesn't allow any more", func() {
	const forbidden = "node node-1, which the scheduler chose, can't have the volume: node node-1 is not within the allowedTopologies of " +
		`StorageClass cloud (its topology.kubernetes.io/zone is "a", not one of b)`

	for _, scope := range []reconciler.Scope{reconciler.ClusterScope, reconciler.ClassesScope} {
		It("goes back to the scheduler, with nothing begun, in scope="+string(scope), func() {
			w := newZonedWorld(scope, "b")
			claim := Claim(InClass("cloud"), placedOn("node-1"), requestedFrom(stowagev1alpha1.GCEDriver))
			w.create(claim)

			w.settle()

			expectUnbegun(w, claim)
			Expect(eventsWith(w.newEvents(), forbidden)).To(HaveLen(1))
			Expect(provisioned.AttemptOf(claim)).To(Equal(1))

			place(w, claim, "node-2")
			w.settle()
			w.get(Volume(provisioned.VolumeID(claim)))
		})
	}

	It("has what was begun there removed first, once its outcome is known", func() {
		w := newZonedWorld(reconciler.ClusterScope, "a")
		claim := Claim(InClass("cloud"), placedOn("node-1"))
		w.halfMake(claim)
		Expect(w.storage.Len()).To(Equal(1))

		rezone(w, "b")
		w.storage.FailNext(backend.InProgress.Errorf("the call goes on"))
		_ = w.round()
		Expect(w.read(claim).Annotations).To(HaveKeyWithValue(step.AnnSelectedNode, "node-1"))
		w.settle()

		expectUnbegun(w, claim)
		place(w, claim, "node-2")
		w.settle()
		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("keeps the volume that was made in time", func() {
		w := newZonedWorld(reconciler.ClusterScope, "a")
		claim := Claim(InClass("cloud"), placedOn("node-1"))
		w.create(claim)
		w.faults = map[int]fault{w.written + 2: lost}
		_ = w.round()
		w.get(Volume(provisioned.VolumeID(claim)))

		rezone(w, "b")
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("keeps the node that the scheduler chose while what was begun is removed", func() {
		w := newZonedWorld(reconciler.ClusterScope, "a")
		claim := Claim(InClass("cloud"), placedOn("node-1"))
		w.halfMake(claim)
		rezone(w, "b")
		w.storage.FailNext(backend.InProgress.Errorf("the call goes on"))
		_ = w.round()

		place(w, claim, "node-2")
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(w.read(claim))))
		Expect(claim.Annotations).To(HaveKeyWithValue(step.AnnSelectedNode, "node-2"))
	})

	for _, kind := range []fault{lost, unanswered} {
		for number := range 5 {
			It("is placed again, with nothing left, when write "+string(rune('1'+number))+" of that is "+string(kind), func() {
				w := newZonedWorld(reconciler.ClusterScope, "a")
				claim := Claim(InClass("cloud"), placedOn("node-1"))
				w.halfMake(claim)
				rezone(w, "b")
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				w.restart()
				w.settle()

				expectUnbegun(w, claim)
				place(w, claim, "node-2")
				w.settle()
				expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
			})
		}
	}
})

// newZonedWorld is a world with a cloud that makes disks in some zones, and a node in
// zone a and in zone b.
func newZonedWorld(scope reconciler.Scope, zones ...string) *world {
	GinkgoHelper()
	w := newWorld(scope)
	w.create(zonedCloud(zones...), nodeInZone("node-1", "a"), nodeInZone("node-2", "b"))
	w.settle()
	return w
}

// rezone has the cloud make disks in other zones, and its class allow them.
func rezone(w *world, zones ...string) {
	GinkgoHelper()
	object := zonedCloud()
	update(w, object, func(object *stowagev1alpha1.StorageBackend) { object.Spec.GCE.Zones = zones })
	_, err := w.backends.Reconcile(GinkgoT().Context(), wake.Request(object))
	Expect(err).NotTo(HaveOccurred())
}

func nodeInZone(name, zone string) *corev1.Node {
	node := Node(name)
	node.Labels[corev1.LabelTopologyZone] = zone
	return node
}

func expectUnbegun(w *world, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w.get(claim)
	Expect(claim.Annotations).NotTo(HaveKey(step.AnnSelectedNode))
	Expect(provisioned.HasIntent(claim)).To(BeFalse())
	Expect(w.storage.Len()).To(BeZero())
}
