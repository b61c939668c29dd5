package integration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With the whole manager running, a claim that asks for more", Ordered, func() {
	It("is woken by a backend that takes its time, and grows in three writes", func(ctx SpecContext) {
		storage, claim := fake.New(), Claim(InClass("disks"))
		startManager(fakeDisks(storage))
		DeferCleanup(removeEverything)
		create(ctx, LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.StorageClass.AllowVolumeExpansion = true
		}), claim)
		eventuallyHas(ctx, claim, "1Gi")
		release := storage.Hold()
		writes.reset()

		before := claim.DeepCopy()
		Asking("2Gi")(claim)
		Expect(users.Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
		Eventually(storage.Calls).WithTimeout(soon).Should(ContainElement(HavePrefix("Expand ")))
		release()

		eventuallyHas(ctx, claim, "2Gi")
		Consistently(writes.total).WithTimeout(time.Second).Should(Equal(3), writes.suspects)
	})
})

func eventuallyHas(ctx context.Context, claim *corev1.PersistentVolumeClaim, size string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Status.Capacity.Storage().String()).To(Equal(size))
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
}
