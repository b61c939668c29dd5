package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// hands is how many people create and delete at once.
const hands = 8

var _ = Describe("With two managers running", func() {
	var storage *fake.Backend
	var one manager

	BeforeEach(func() {
		storage = fake.New()
		one = manager{scope: reconciler.ClusterScope, kinds: []backend.Kind{
			fake.Kind{For: stowagev1alpha1.LocalType, Backend: storage},
		}}
	})

	It("no volume is given twice and none is lost, though both believe that they lead", func(ctx SpecContext) {
		const pairs, made = 80, 20
		one.start()
		one.start()
		DeferCleanup(removeQuickly)
		create(ctx, LocalBackend("disks"))

		create(ctx, Volume("spare", Holding("1Ti")))
		inAnyOrder(pairs, func(i int) { create(ctx, sizedVolume(i), sizedClaim(i)) })
		inAnyOrder(made, func(i int) { create(ctx, Claim(ClaimNamed(name("made", i)), InClass("disks"))) })
		inAnyOrder(pairs/5, func(i int) { Expect(users.Delete(ctx, sizedClaim(5*i))).To(Succeed()) })
		inAnyOrder(made/2, func(i int) { Expect(users.Delete(ctx, Claim(ClaimNamed(name("made", i))))).To(Succeed()) })

		eventuallyAtRest(ctx)
		Eventually(storage.Len).WithTimeout(clearing).Should(Equal(made / 2))
	})

	It("the second goes on where the first was killed", func(ctx SpecContext) {
		const pairs = 100
		one.elected = true
		kill := one.start()
		inAnyOrder(pairs, func(i int) { create(ctx, sizedVolume(i)) })
		go inAnyOrder(pairs, func(i int) { _ = users.Create(ctx, sizedClaim(i)) })
		Eventually(boundClaims).WithArguments(ctx).WithTimeout(clearing).Should(BeNumerically(">", pairs/5))

		one.start()
		kill()
		DeferCleanup(removeQuickly)

		Eventually(boundClaims).WithArguments(ctx).WithTimeout(clearing).Should(Equal(pairs))
		eventuallyAtRest(ctx)
	})
})

func sizedVolume(i int) *corev1.PersistentVolume {
	return Volume(name("volume", i), Holding(fmt.Sprintf("%dGi", i+1)))
}

func sizedClaim(i int) *corev1.PersistentVolumeClaim {
	return Claim(ClaimNamed(name("claim", i)), Asking(fmt.Sprintf("%dGi", i+1)))
}

// inAnyOrder does something for every number, with several hands.
func inAnyOrder(count int, do func(int)) {
	order := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0)).Perm(count)
	var working sync.WaitGroup
	for hand := range hands {
		working.Go(func() {
			defer GinkgoRecover()
			for at := hand; at < count; at += hands {
				do(order[at])
			}
		})
	}
	working.Wait()
}

func boundClaims(ctx context.Context) (int, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	err := users.List(ctx, claims)
	bound := 0
	for i := range claims.Items {
		if claims.Items[i].Status.Phase == corev1.ClaimBound {
			bound++
		}
	}
	return bound, err
}

// removeQuickly removes many objects at once, and then all others.
func removeQuickly(ctx SpecContext) {
	Expect(users.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(Namespace))).To(Succeed())
	Eventually(func() ([]corev1.PersistentVolumeClaim, error) {
		claims := &corev1.PersistentVolumeClaimList{}
		err := users.List(ctx, claims)
		return claims.Items, err
	}).WithTimeout(clearing).Should(BeEmpty())
	Expect(users.DeleteAllOf(ctx, &corev1.PersistentVolume{})).To(Succeed())
	Eventually(func() ([]corev1.PersistentVolume, error) {
		volumes := &corev1.PersistentVolumeList{}
		err := users.List(ctx, volumes)
		return volumes.Items, err
	}).WithTimeout(clearing).Should(BeEmpty())
	removeEverything(ctx)
}
