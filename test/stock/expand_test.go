package stock_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A bound claim that asks for more", func() {
	It("gets it, where nothing is left to do on a node", func(ctx SpecContext) {
		claim := Claim(ClaimNamed("growing"), InClass(share), Asking("16Mi"))
		create(ctx, claim)
		tidy(claim)
		eventuallyBound(ctx, claim)

		before := claim.DeepCopy()
		Asking("32Mi")(claim)
		Expect(users.Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())

		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(claim), claim)).To(Succeed())
			g.Expect(claim.Status.Capacity.Storage().String()).To(Equal("32Mi"))
			g.Expect(claim.Status.AllocatedResourceStatuses).To(BeEmpty())
			g.Expect(claim.Status.Conditions).NotTo(ContainElement(HaveField("Type", corev1.PersistentVolumeClaimResizing)))
		}).Should(Succeed())
	})

	It("is left to the kubelet, where a file system has to grow", func(ctx SpecContext) {
		claim := Claim(ClaimNamed("growing"), InClass(cloud+"-now"))
		create(ctx, claim)
		tidy(claim)
		eventuallyBound(ctx, claim) // to a disk of 10Gi: the cloud has no smaller ones

		before := claim.DeepCopy()
		Asking("20Gi")(claim)
		Expect(users.Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())

		waits := func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(claim), claim)).To(Succeed())
			g.Expect(claim.Status.Conditions).To(ContainElement(And(
				HaveField("Type", corev1.PersistentVolumeClaimFileSystemResizePending), HaveField("Status", corev1.ConditionTrue))))
			g.Expect(claim.Status.AllocatedResourceStatuses).To(HaveKeyWithValue(
				corev1.ResourceStorage, corev1.PersistentVolumeClaimNodeResizePending))
			g.Expect(claim.Status.AllocatedResources.Storage().String()).To(Equal("20Gi"))
			g.Expect(claim.Status.Capacity.Storage().String()).To(Equal("10Gi"))
			pv := Volume(claim.Spec.VolumeName)
			g.Expect(users.Get(ctx, keyOf(pv), pv)).To(Succeed())
			g.Expect(pv.Spec.Capacity.Storage().String()).To(Equal("20Gi"))
		}
		Eventually(waits).Should(Succeed())
		// kube-controller-manager looks at claims and volumes, too.
		Consistently(waits).WithTimeout(still).Should(Succeed())
	})
})
