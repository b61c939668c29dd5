package controllers

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim for which the scheduler chose a node", func() {
	It("is provisioned there", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"), placedOn("node-1"))
		w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"), claim)

		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("Normal ProvisioningSucceeded Successfully provisioned volume pvc-")))
	})

	DescribeTable("goes back to the scheduler, once, with nothing left behind",
		func(kind backend.ErrorKind) {
			w, storage, claim := newCrowdedWorld(kind)
			w.create(claim)

			w.settle()

			expectUnplaced(w, storage, claim)
			Expect(eventsWith(w.newEvents(), "node node-1, which the scheduler chose, can't have the volume: node-1 is full")).To(HaveLen(1))

			place(w, claim, "node-2")
			w.settle()
			expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
		},
		Entry("when the node has no room", backend.Exhausted),
		Entry("when the node is none of the backend's", backend.WrongNode),
	)

	It("stays where it is when the node only can't answer now", func() {
		w, _, claim := newCrowdedWorld(backend.Unavailable)
		w.create(claim)

		w.settle()

		w.get(claim)
		Expect(claim.Annotations).To(HaveKeyWithValue(step.AnnSelectedNode, "node-1"))
	})

	It("goes back to the scheduler when the node is gone before anything was begun", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"), placedOn("gone"))
		w.create(LocalBackend("disks", waitingForConsumer), claim)

		w.settle()

		w.get(claim)
		Expect(claim.Annotations).NotTo(HaveKey(step.AnnSelectedNode))
		Expect(eventsWith(w.newEvents(), "node gone, which the scheduler chose")).To(HaveLen(1))
	})

	It("goes back to the scheduler when the node goes while its volume is made, which is removed", func() {
		w, storage, claim := newCrowdedWorld(backend.Exhausted)
		place(w, claim, "node-2")
		w.halfMake(claim)
		Expect(storage.Len()).To(Equal(1))

		w.delete(Node("node-2"))
		w.settle()

		expectUnplaced(w, storage, claim)
	})

	It("keeps the volume that was made on a node that goes", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"), placedOn("node-1"))
		w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"))
		w.settle()
		w.create(claim)
		w.faults = map[int]fault{w.written + 2: lost}
		_ = w.round()

		w.delete(Node("node-1"))
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
	})

	It("is not taken from a node that the cache has not seen yet", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"), placedOn("node-1"))
		w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"), claim)

		w.views.claims.Client = withoutNodes{w}
		w.settle()

		w.get(claim)
		Expect(claim.Annotations).To(HaveKeyWithValue(step.AnnSelectedNode, "node-1"))
	})

	It("keeps the node that the scheduler chose since", func() {
		w, storage, claim := newCrowdedWorld(backend.Exhausted)
		w.create(claim)
		_ = w.round()
		Expect(storage.removing).NotTo(BeEmpty())

		place(w, claim, "node-2")
		w.settle()

		expectBound(w, claim, Volume(provisioned.VolumeID(w.read(claim))))
		Expect(claim.Annotations).To(HaveKeyWithValue(step.AnnSelectedNode, "node-2"))
	})

	It("reports the reason, and no more, when its pod was placed by hand", func() {
		w, storage, claim := newCrowdedWorld(backend.Exhausted)
		delete(claim.Annotations, step.AnnSelectedNode)
		w.create(claim, Pod("user", "node-1", "data"))

		w.settle()

		Expect(w.condition(claim).Message).To(HavePrefix("node-1 is full"))
		Expect(storage.removing).To(BeEmpty())
	})

	It("goes back to the scheduler in scope=classes too", func() {
		w, storage, claim := newCrowdedWorld(backend.Exhausted)
		w.scope = reconciler.ClassesScope
		w.restart()
		w.serve(byName{"disks": storage})
		requestedFrom(stowagev1alpha1.LocalDriver)(claim)
		w.create(claim)

		w.settle()

		expectUnplaced(w, storage, claim)
		Expect(eventsWith(w.newEvents(), "node node-1, which the scheduler chose")).To(HaveLen(1))
	})
})

var _ = Describe("Giving a node up that is interrupted", func() {
	const writes = 5
	for _, kind := range []fault{lost, unanswered} {
		for number := range writes {
			It("ends with another node and nothing left when write "+string(rune('1'+number))+" is "+string(kind), func() {
				w, storage, claim := newCrowdedWorld(backend.Exhausted)
				w.create(claim)
				w.faults = map[int]fault{w.written + number: kind}

				_ = w.round()
				_ = w.round()
				w.restart()
				w.serve(byName{"disks": storage})
				w.settle()
				expectUnplaced(w, storage, claim)

				place(w, claim, "node-2")
				w.settle()
				expectBound(w, claim, Volume(provisioned.VolumeID(claim)))
			})
		}
	}
})

var _ = Describe("A claim that waits for its first consumer", func() {
	It("names the pods for which the scheduler has yet to choose a node", func() {
		w := newWorld(reconciler.ClusterScope)
		claim := Claim(InClass("disks"))
		w.create(LocalBackend("disks", waitingForConsumer), claim)
		for _, name := range []string{"d", "c", "b", "a"} {
			w.create(Pod(name, "", "data"))
		}

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal("WaitForPodScheduled"))
		Expect(w.condition(claim).Message).To(ContainSubstring("a node for pod a, b, c, and others:"))
		Expect(eventsWith(w.newEvents(), "WaitForPodScheduled")).To(HaveLen(1))
	})
})

// newCrowdedWorld is a world with two nodes, of which the first can't have
// volumes, and a claim that is placed there.
var _ = Describe("A claim that the scheduler sent to a provisioner", func() {
	It("gets no other volume of its class behind the back of that provisioner", func() {
		w := newWorld(reconciler.ClusterScope)
		class := Class("foreign", "example.com/disks", nil)
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
		claim := Claim(InClass("foreign"), placedOn("node-1"))
		w.create(Node("node-1"), class, Volume("v", OfClass("foreign")), claim)

		w.settle()

		Expect(w.condition(claim).Reason).To(Equal("ExternalProvisioning"))
		Expect(claim.Spec.VolumeName).To(BeEmpty())
		expectPhase(w, Volume("v"), corev1.VolumeAvailable)

		pv := Volume("made", OfClass("foreign"), madeBy("example.com/disks"), tiedTo(claim))
		w.create(pv)
		w.settle()
		expectBound(w, claim, pv)
	})
})

func newCrowdedWorld(kind backend.ErrorKind) (*world, *crowded, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w := newWorld(reconciler.ClusterScope)
	storage := &crowded{Backend: w.storage, kind: kind, removing: map[string]bool{}}
	w.serve(byName{"disks": storage})
	w.create(LocalBackend("disks", waitingForConsumer), Node("node-1"), Node("node-2"))
	w.settle()
	return w, storage, Claim(InClass("disks"), placedOn("node-1"))
}

// crowded is storage whose node-1 can't have volumes. It keeps a record of those
// that it was asked for there, which takes its time to go.
type crowded struct {
	*fake.Backend
	kind     backend.ErrorKind
	removing map[string]bool
	recorded []string
}

func (s *crowded) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	if provisioning.NameOf(request.Node) == "node-1" {
		s.recorded = append(s.recorded, request.ID)
		return nil, s.kind.Errorf("node-1 is full")
	}
	return s.Backend.Provision(ctx, request)
}

func (s *crowded) Delete(ctx context.Context, id string) error {
	if slices.Contains(s.recorded, id) {
		s.recorded, s.removing[id] = nil, true
		return backend.InProgress.Errorf("removing the record")
	}
	return s.Backend.Delete(ctx, id)
}

func placedOn(node string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, step.AnnSelectedNode, node)
	}
}

// place does what the scheduler does; a claim may be yet to be created.
func place(w *world, claim *corev1.PersistentVolumeClaim, node string) {
	GinkgoHelper()
	if claim.UID == "" {
		placedOn(node)(claim)
		return
	}
	update(w, claim, placedOn(node))
}

func expectUnplaced(w *world, storage *crowded, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	w.get(claim)
	Expect(claim.Annotations).NotTo(HaveKey(step.AnnSelectedNode))
	Expect(claim.Annotations).NotTo(HaveKey(stowagev1alpha1.ProvisioningAnnotation))
	Expect(claim.Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
	Expect(storage.recorded).To(BeEmpty())
	Expect(storage.Len()).To(BeZero())
}

// tellingOf are the events that contain a text.
func eventsWith(events []string, text string) []string {
	return slices.DeleteFunc(events, func(event string) bool { return !strings.Contains(event, text) })
}
