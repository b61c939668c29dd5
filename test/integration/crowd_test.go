package integration_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("In a crowd of claims that nothing fits", func() {
	It("the few that new volumes fit are bound at once, each to the one of its size", func(ctx SpecContext) {
		const crowd, few = 300, 10
		startManager(fakeDisks(fake.New()))
		DeferCleanup(removeQuickly)
		inAnyOrder(crowd, func(i int) { create(ctx, Claim(ClaimNamed(name("crowd", i)), Asking("1Ti"))) })
		for i := range crowd {
			eventuallyWaits(ctx, Claim(ClaimNamed(name("crowd", i))), "NoMatchingVolume")
		}
		inAnyOrder(few, func(i int) { create(ctx, sizedClaim(i)) })
		for i := range few {
			eventuallyWaits(ctx, sizedClaim(i), "NoMatchingVolume")
		}

		inAnyOrder(few, func(i int) { create(ctx, sizedVolume(i)) })
		Eventually(boundClaims).WithArguments(ctx).WithTimeout(soon).Should(Equal(few))

		for i := range few {
			claim := sizedClaim(i)
			eventuallyBound(ctx, claim)
			Expect(claim.Spec.VolumeName).To(Equal(name("volume", i)))
		}
	})
})
