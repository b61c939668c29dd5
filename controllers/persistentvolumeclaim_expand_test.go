package controllers

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/expansion"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A bound claim that requests more", func() {
	var (
		w     *world
		claim *corev1.PersistentVolumeClaim
	)
	BeforeEach(func() {
		w = newWorld(reconciler.ClusterScope)
		claim = w.boundClaim()
	})

	It("gets it from the backend, in three writes, with events", func() {
		before := w.written
		w.requestSize(claim, "2Gi")

		expectExpanded(w, claim, "2Gi")
		Expect(w.written - before).To(Equal(3))
		Expect(claim.Annotations).To(HaveKeyWithValue("volume.kubernetes.io/node-expansion-not-required", "true"))
		Expect(w.newEvents()).To(ContainElements(ContainSubstring("Normal Resizing growing volume"), ContainSubstring("VolumeResizeSuccessful")))
	})

	It("gets more again", func() {
		w.requestSize(claim, "2Gi")
		w.requestSize(claim, "3Gi")

		expectExpanded(w, claim, "3Gi")
	})

	It("reports that its size is a label, on claim, volume and in an event", func() {
		w.storage.SetAdvisory()
		w.requestSize(claim, "2Gi")

		pv := expectExpanded(w, claim, "2Gi")
		Expect(claim.Annotations).To(HaveKeyWithValue(stowagev1alpha1.CapacityAnnotation, "Advisory"))
		Expect(pv.Annotations).To(HaveKeyWithValue(stowagev1alpha1.CapacityAnnotation, "Advisory"))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("a label: nothing keeps the claim from using more")))
	})

	It("cannot request less than it has: the API server refuses", func() {
		w.requestSize(claim, "2Gi")
		Asking("1Gi")(claim)
		Expect(w.direct.Update(GinkgoT().Context(), claim)).To(MatchError(ContainSubstring("field can not be less than status.capacity")))
	})

	It("reports once why the backend can't, which is not called again until the request changes", func() {
		w.storage.FailNext(backend.Invalid.Errorf("no volume has more than 5Gi"))
		w.requestSize(claim, "10Gi")
		w.restart()
		w.settle()

		Expect(expansion.ResizeStatus(w.read(claim))).To(Equal(corev1.PersistentVolumeClaimControllerResizeInfeasible))
		Expect(w.resizeError(claim)).To(Equal("Invalid: no volume has more than 5Gi"))
		Expect(w.expansions()).To(HaveLen(1))

		w.requestSize(claim, "5Gi")
		expectExpanded(w, claim, "5Gi")
	})

	It("reports once that there is no space, and gets less when it requests less", func() {
		w.storage.FailNext(exhausted(2 * maxRounds)...)
		w.requestSize(claim, "10Gi")
		w.settle()
		Expect(w.resizeError(claim)).To(Equal("Exhausted: 4Gi are left"))
		Expect(expansion.ResizeStatus(claim)).To(Equal(corev1.PersistentVolumeClaimControllerResizeInProgress))
		Expect(w.newEvents()).To(ContainElement(Equal("Warning VolumeResizeFailed 4Gi are left")))
		Expect(w.newEvents()).To(BeEmpty())

		w.storage.FailNothing()
		w.requestSize(claim, "3Gi")
		expectExpanded(w, claim, "3Gi")
		Expect(claim.Status.AllocatedResources.Storage().String()).To(Equal("3Gi"))
	})

	It("gets its first request while the outcome of that is unknown, whatever it requests by then", func() {
		w.storage.FailNext(errors.New("connection lost"))
		update(w, claim, Asking("10Gi"))
		_ = w.round()
		Expect(w.resizeError(claim)).To(Equal("Unknown: connection lost"))

		w.requestSize(claim, "3Gi")
		expectExpanded(w, claim, "10Gi")
	})

	It("gets both sizes when it requests still more in the middle", func() {
		w.storage.FailNext(backend.InProgress.Errorf("resizing"))
		update(w, claim, Asking("2Gi"))
		_ = w.round()
		Expect(w.resizeError(claim)).To(BeEmpty(), "nothing is wrong")

		w.requestSize(claim, "3Gi")
		expectExpanded(w, claim, "3Gi")
		Expect(w.expansions()).To(HaveExactElements(HaveSuffix("to 2Gi"), HaveSuffix("to 2Gi"), HaveSuffix("to 3Gi")))
	})

	It("goes with its storage when it is deleted in the middle", func() {
		w.storage.FailNext(backend.InProgress.Errorf("resizing"))
		update(w, claim, Asking("2Gi"))
		_ = w.round()
		w.delete(claim)
		w.settle()

		Expect(w.gone(claim)).To(BeTrue())
		Expect(w.storage.Len()).To(BeZero())
		Expect(w.expansions()).To(HaveLen(1))
	})
})

var _ = Describe("A claim whose file system a node has to grow", func() {
	var (
		w     *world
		claim *corev1.PersistentVolumeClaim
	)
	BeforeEach(func() {
		w = newWorld(reconciler.ClusterScope)
		claim = w.boundClaim()
		w.storage.SetOnNode()
		w.requestSize(claim, "2Gi")
	})

	It("waits for the node, and has no more until that says so", func() {
		pv := w.volumeOf(claim)
		Expect(pv.Spec.Capacity.Storage().String()).To(Equal("2Gi"))
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("1Gi"))
		Expect(expansion.ResizeStatus(claim)).To(Equal(corev1.PersistentVolumeClaimNodeResizePending))
		Expect(claim.Status.Conditions).To(ContainElement(HaveField("Type", corev1.PersistentVolumeClaimFileSystemResizePending)))
		Expect(claim.Annotations).NotTo(HaveKey(expansion.AnnNodeExpansionNotRequired))
		Expect(w.newEvents()).To(ContainElement(ContainSubstring("FileSystemResizeRequired")))
	})

	It("is left to the node, also when it requests still more, until that is done", func() {
		w.requestSize(claim, "3Gi")
		Expect(w.expansions()).To(HaveLen(1))

		w.growOnNode(claim)
		w.settle()

		Expect(w.volumeOf(claim).Spec.Capacity.Storage().String()).To(Equal("3Gi"))
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("2Gi"))
		Expect(expansion.ResizeStatus(claim)).To(Equal(corev1.PersistentVolumeClaimNodeResizePending))
	})

	It("leaves no mark on its volume once the node is done", func() {
		Expect(w.volumeOf(claim).Annotations).To(HaveKeyWithValue(step.AnnPreResizeCapacity, "1Gi"))
		w.growOnNode(claim)
		w.settle()
		Expect(w.volumeOf(claim).Annotations).NotTo(HaveKey(step.AnnPreResizeCapacity))
	})

	It("has, for another claim that is bound to the volume before that, only the size of the file system", func() {
		pv := w.volumeOf(claim)
		update(w, pv, Reclaimed(corev1.PersistentVolumeReclaimRetain))
		w.delete(claim)
		w.settle()
		update(w, pv, func(pv *corev1.PersistentVolume) { ReservedTo("next")(pv) })
		next := Claim(ClaimNamed("next"), InClass("disks"), AskingFor(pv.Name))
		w.create(next)
		w.settle()

		Expect(w.read(next).Status.Capacity.Storage().String()).To(Equal("1Gi"))
	})
})

var _ = Describe("A claim whose volume is not Stowage's to grow", func() {
	It("reports once that another controller grows it", func() {
		w := newWorld(reconciler.ClusterScope)
		class := Class("foreign", "ebs.csi.aws.com", nil)
		class.AllowVolumeExpansion = new(true)
		claim := Claim(InClass("foreign"))
		w.create(class, Volume("v", OfClass("foreign"), ofDriver("ebs.csi.aws.com")), claim)
		w.settle()
		w.newEvents()

		w.requestSize(claim, "2Gi")
		w.settle()

		Expect(w.newEvents()).To(HaveExactElements(ContainSubstring("Normal ExternalExpanding")))
		Expect(w.read(claim).Status.AllocatedResources).To(BeEmpty())
		Expect(claim.Annotations).NotTo(HaveKey("volume.kubernetes.io/storage-resizer"))
	})

	It("reports once that nothing grows a volume that no driver serves", func() {
		w := newWorld(reconciler.ClusterScope)
		class := Class("by-hand", provisioning.NoProvisioner, nil)
		class.AllowVolumeExpansion = new(true)
		claim := Claim(InClass("by-hand"))
		w.create(class, Volume("v", OfClass("by-hand")), claim)
		w.settle()
		w.newEvents()

		w.requestSize(claim, "2Gi")
		w.settle()

		Expect(w.newEvents()).To(HaveExactElements(And(HavePrefix("Warning VolumeResizeFailed"), HaveSuffix(": create a larger claim, and copy the data"))))
	})
})

var _ = Describe("In scope=classes a claim that requests more", func() {
	It("gets it as soon as it is bound, because no other controller expands it", func() {
		w := newWorld(reconciler.ClassesScope)
		claim := Claim(InClass("disks"), requestedFrom(stowagev1alpha1.LocalDriver))
		w.create(LocalBackend("disks", expandable), claim)
		w.settle()
		w.bindByHand(claim)

		w.requestSize(claim, "2Gi")

		expectExpanded(w, claim, "2Gi")
	})
})
