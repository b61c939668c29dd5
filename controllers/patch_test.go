package controllers

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/binding"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = DescribeTable("The write that ties a volume to a claim leaves what was decided",
	func(ctx SpecContext, was func(*corev1.PersistentVolume)) {
		w := newWorld(reconciler.ClusterScope)
		pv, claim := Volume("v", was), Claim()
		w.create(pv, claim)
		decided := pv.DeepCopy()
		Expect(binder.BindVolume(decided, claim)).To(BeTrue())

		Expect(w.Patch(ctx, pv.DeepCopy(), patch.ClaimRef(pv, decided))).To(Succeed())

		w.get(pv)
		Expect(meaning(pv)).To(Equal(meaning(decided)))
		Expect(pv.Spec).To(Equal(decided.Spec))
	},
	Entry("of a free volume", func(*corev1.PersistentVolume) {}),
	Entry("of one with annotations of others", func(pv *corev1.PersistentVolume) {
		pv.Annotations = map[string]string{"example.com/rack": "7"}
	}),
	Entry("of one that a person reserved, over an earlier choice of a controller", func(pv *corev1.PersistentVolume) {
		ReservedTo("data")(pv)
		pv.Annotations = map[string]string{volume.AnnBoundByController: "yes", "example.com/rack": "7"}
	}),
	Entry("of one whose reference says more than the claim's name", func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", ResourceVersion: "12", FieldPath: "spec"}
	}),
)

var _ = DescribeTable("The write that ties a claim to a volume leaves what was decided",
	func(ctx SpecContext, was func(*corev1.PersistentVolumeClaim)) {
		w := newWorld(reconciler.ClusterScope)
		pv, claim := Volume("v"), Claim(was)
		w.create(pv, claim)
		decided := claim.DeepCopy()
		Expect(binder.BindClaim(decided, pv)).To(BeTrue())
		provisioned.ClearIntent(decided)

		Expect(w.Patch(ctx, claim.DeepCopy(), patch.VolumeName(claim, decided))).To(Succeed())

		w.get(claim)
		Expect(meaning(claim)).To(Equal(meaning(decided)))
		Expect(claim.Spec).To(Equal(decided.Spec))
	},
	Entry("of a claim that takes what comes", func(*corev1.PersistentVolumeClaim) {}),
	Entry("of one that names its volume", AskingFor("v")),
	Entry("of one for which a backend was called", func(claim *corev1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{stowagev1alpha1.ProvisioningAnnotation: "{}", "example.com/rack": "7"}
		claim.Finalizers = []string{stowagev1alpha1.ProvisioningFinalizer, "example.com/mine"}
	}),
)

var _ = DescribeTable("The write that sets a claim to Bound leaves what was decided",
	func(ctx SpecContext, was corev1.PersistentVolumeClaimStatus, has func(*corev1.PersistentVolume)) {
		w := newWorld(reconciler.ClusterScope)
		pv, claim := Volume("v", Holding("5Gi"), has), Claim()
		w.create(pv, claim)
		claim.Status = was
		Expect(w.direct.Status().Update(ctx, claim)).To(Succeed())
		decided := claim.DeepCopy()
		Expect(binding.SetBound(decided, pv)).To(BeTrue())

		Expect(w.Status().Patch(ctx, claim.DeepCopy(), patch.BoundStatus(claim.Status, decided))).To(Succeed())

		w.get(claim)
		Expect(claim.Status.Conditions).To(HaveLen(len(decided.Status.Conditions)))
		decided.Status.Conditions, claim.Status.Conditions = nil, nil
		Expect(claim.Status).To(Equal(decided.Status))
	},
	Entry("of a new claim", corev1.PersistentVolumeClaimStatus{}, func(*corev1.PersistentVolume) {}),
	Entry("of one that had another capacity", corev1.PersistentVolumeClaimStatus{
		Phase:    corev1.ClaimLost,
		Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi"), "example.com/inodes": resource.MustParse("9")},
	}, func(*corev1.PersistentVolume) {}),
	Entry("of one whose volume has an attributes class", corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimPending, Conditions: []corev1.PersistentVolumeClaimCondition{{Type: "Resizing", Status: corev1.ConditionTrue}},
	}, func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: "v"},
		}
		pv.Spec.VolumeAttributesClassName = new("gold")
	}),
	Entry("of one whose volume has none any more", corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")},
		CurrentVolumeAttributesClassName: new("gold"),
	}, func(*corev1.PersistentVolume) {}),
)

var _ = Describe("The writes of a bind", func() {
	var (
		w     *world
		pv    *corev1.PersistentVolume
		claim *corev1.PersistentVolumeClaim
	)

	BeforeEach(func() {
		w, pv, claim = newWorld(reconciler.ClusterScope), Volume("v"), Claim()
		w.create(pv, claim)
	})

	It("are refused if the object changed since the read that decided them", func(ctx SpecContext) {
		tied, bound := pv.DeepCopy(), claim.DeepCopy()
		binder.BindVolume(tied, claim)
		binder.BindClaim(bound, pv)
		update(w, pv.DeepCopy(), func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{"newer": ""} })
		update(w, claim.DeepCopy(), func(claim *corev1.PersistentVolumeClaim) { claim.Labels = map[string]string{"newer": ""} })

		for _, write := range []error{
			w.Patch(ctx, pv.DeepCopy(), patch.ClaimRef(pv, tied)),
			w.Status().Patch(ctx, pv.DeepCopy(), patch.VolumePhase(pv, corev1.VolumeBound, "")),
			w.Patch(ctx, claim.DeepCopy(), patch.VolumeName(claim, bound)),
		} {
			Expect(apierrors.IsConflict(write)).To(BeTrue(), "%v", write)
		}
	})

	It("keep the conditions that others wrote since", func(ctx SpecContext) {
		resizing := corev1.PersistentVolumeClaimCondition{Type: "Resizing", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())}
		theirs := claim.DeepCopy()
		theirs.Status.Conditions = append(theirs.Status.Conditions, resizing)
		Expect(w.direct.Status().Update(ctx, theirs)).To(Succeed())
		decided := claim.DeepCopy()
		binding.SetBound(decided, pv)

		Expect(w.Status().Patch(ctx, claim.DeepCopy(), patch.BoundStatus(claim.Status, decided))).To(Succeed())

		Expect(w.condition(claim).Reason).To(Equal("Bound"))
		Expect(claim.Status.Conditions).To(ContainElement(HaveField("Type", BeEquivalentTo("Resizing"))))
	})

	It("replace why a volume failed with what holds now", func(ctx SpecContext) {
		Expect(w.Status().Patch(ctx, pv, patch.VolumePhase(pv, corev1.VolumeFailed, "its disk is gone"))).To(Succeed())
		Expect(w.Status().Patch(ctx, pv, patch.VolumePhase(pv, corev1.VolumeBound, ""))).To(Succeed())

		w.get(pv)
		Expect(pv.Status.Phase).To(Equal(corev1.VolumeBound))
		Expect(pv.Status.Message).To(BeEmpty())
	})
})

// meaning is an object's metadata without the fields that change with every write.
func meaning(object client.Object) map[string]any {
	return map[string]any{
		"uid": object.GetUID(), "annotations": object.GetAnnotations(), "labels": object.GetLabels(),
		"finalizers": object.GetFinalizers(), "deleted": object.GetDeletionTimestamp(),
	}
}
