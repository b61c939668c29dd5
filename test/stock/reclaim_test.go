package stock_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume whose claim is deleted", func() {
	It("is there while a pod uses the claim, and goes, with the disk, after it", func(ctx SpecContext) {
		claim, pod := Claim(ClaimNamed("used"), InClass(cloud)), Pod("using", "", "used")
		create(ctx, claim, pod)
		tidy(pod, claim)
		eventuallyPlaced(ctx, pod)
		pv := eventuallyBound(ctx, claim)
		eventuallyAttachedTo(ctx, pod.Spec.NodeName, pv)

		remove(ctx, claim)
		Consistently(func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(pv), pv)).To(Succeed())
			g.Expect(pv.Status.Phase).To(Equal(corev1.VolumeBound))
		}).WithTimeout(still).Should(Succeed())
		remove(ctx, pod)

		eventuallyGone(ctx, claim)
		eventuallyGone(ctx, pv)
		Expect(world.disks(ctx)).NotTo(ContainElement(pv.Name))
	})

	It("is kept, with the disk, where its policy is Retain", func(ctx SpecContext) {
		claim := Claim(ClaimNamed("kept"), InClass(cloud+"-now"))
		create(ctx, claim)
		pv := eventuallyBound(ctx, claim)
		before := pv.DeepCopy()
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		Expect(users.Patch(ctx, pv, client.MergeFrom(before))).To(Succeed())

		remove(ctx, claim)

		eventuallyGone(ctx, claim)
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(pv), pv)).To(Succeed())
			g.Expect(pv.Status.Phase).To(Equal(corev1.VolumeReleased))
		}).Should(Succeed())
		remove(ctx, pv)
		eventuallyGone(ctx, pv)
		Expect(world.disks(ctx)).To(ContainElement(pv.Name))
	})

	It("goes with it, and the disk too, where the volume was deleted first", func(ctx SpecContext) {
		claim := Claim(ClaimNamed("second"), InClass(cloud+"-now"))
		create(ctx, claim)
		pv := eventuallyBound(ctx, claim)
		remove(ctx, pv)
		Consistently(world.disks).WithArguments(ctx).WithTimeout(still).Should(ContainElement(pv.Name))

		remove(ctx, claim)

		eventuallyGone(ctx, claim)
		eventuallyGone(ctx, pv)
		Expect(world.disks(ctx)).NotTo(ContainElement(pv.Name))
	})

	It("that an administrator made can be bound, and is kept", func(ctx SpecContext) {
		pv, claim := Volume("by-hand", OfClass("by-hand")), Claim(ClaimNamed("of-hand"), InClass("by-hand"))
		create(ctx, pv, claim)
		DeferCleanup(func(ctx SpecContext) { remove(ctx, pv); eventuallyGone(ctx, pv) })

		Expect(eventuallyBound(ctx, claim).Name).To(Equal("by-hand"))
		remove(ctx, claim)

		eventuallyGone(ctx, claim)
		Expect(users.Get(ctx, keyOf(pv), pv)).To(Succeed())
		Expect(pv.Finalizers).NotTo(ContainElement(stowagev1alpha1.ReclaimFinalizer))
	})
})

var _ = Describe("Claims that controllers make", func() {
	It("those of a StatefulSet are provided for, each where its pod is placed", func(ctx SpecContext) {
		template := *Claim(ClaimNamed("data"), InClass(disks), Asking("8Mi"))
		template.Namespace = ""
		labels := map[string]string{"app": "set"}
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "set"},
			Spec: appsv1.StatefulSetSpec{
				Replicas: new(int32(3)), PodManagementPolicy: appsv1.ParallelPodManagement,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "main", Image: "example.com/main", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
					}},
				}},
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{template},
				PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
					WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
				},
			},
		}
		create(ctx, set)
		for _, name := range []string{"set-0", "set-1", "set-2"} {
			claim, pod := Claim(ClaimNamed("data-"+name)), Pod(name, "")
			pv := eventuallyBound(ctx, claim)
			Expect(isUsableOn(pv, eventuallyPlaced(ctx, pod))).To(BeTrue())
		}

		Expect(users.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())

		for _, name := range []string{"set-0", "set-1", "set-2"} {
			pod := Pod(name, "")
			Eventually(func(g Gomega) {
				g.Expect(users.Get(ctx, keyOf(pod), pod)).To(Succeed())
				g.Expect(pod.DeletionTimestamp.IsZero()).To(BeFalse())
			}).Should(Succeed())
			remove(ctx, pod)
			eventuallyGone(ctx, Claim(ClaimNamed("data-"+name)))
		}
		eventuallyNoVolumes(ctx)
	})

	It("that of a generic ephemeral volume goes with its pod, and the storage with it", func(ctx SpecContext) {
		pod := Pod("brief", "")
		pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				Spec: Claim(InClass(disks), Asking("8Mi")).Spec,
			}},
		}}}
		create(ctx, pod)
		tidy(pod)
		eventuallyPlaced(ctx, pod)
		claim := Claim(ClaimNamed("brief-scratch"))
		pv := eventuallyBound(ctx, claim)
		Expect(metav1.IsControlledBy(claim, pod)).To(BeTrue())

		remove(ctx, pod)

		eventuallyGone(ctx, claim)
		eventuallyGone(ctx, pv)
	})
})

func eventuallyNoVolumes(ctx SpecContext) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		volumes := &corev1.PersistentVolumeList{}
		g.Expect(users.List(ctx, volumes)).To(Succeed())
		g.Expect(volumes.Items).To(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
}
