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

	It("is expanded once its driver has a StorageBackend, whatever began before", func(ctx SpecContext) {
		const driver = "disk.example.com"
		storage := fake.New()
		startManager(fake.Kind{For: stowagev1alpha1.CSIType, Backend: storage})
		DeferCleanup(removeEverything)
		class, pv, claim := Class("grows", driver, nil), Volume("v", OfClass("grows")), Claim(InClass("grows"))
		class.AllowVolumeExpansion = new(true)
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "v"}}
		create(ctx, class, pv, claim)
		eventuallyBound(ctx, claim)
		before := claim.DeepCopy()
		Asking("2Gi")(claim)
		Expect(users.Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())
		Eventually(func(g Gomega) {
			events := &corev1.EventList{}
			g.Expect(users.List(ctx, events)).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", "ExternalExpanding"), HaveField("InvolvedObject.UID", claim.UID))))
		}).WithTimeout(soon).Should(Succeed())

		create(ctx, LocalBackend(driver, func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.Local, object.Spec.StorageClass = nil, nil
			object.Spec.CSI = &stowagev1alpha1.CSIBackend{Driver: driver, Endpoint: "unix:///csi/csi.sock"}
		}))

		Eventually(storage.Calls).WithTimeout(soon).Should(ContainElement(HavePrefix("Expand ")))
	})
})

func eventuallyHas(ctx context.Context, claim *corev1.PersistentVolumeClaim, size string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Status.Capacity.Storage().String()).To(Equal(size))
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
}
