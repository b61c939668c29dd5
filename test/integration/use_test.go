package integration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With the whole manager running, while pods come and go", Ordered, func() {
	BeforeEach(func() {
		startManager(fakeDisks(fake.New()))
		DeferCleanup(removeEverything)
	})

	It("a bound claim reports whether one uses it", func(ctx SpecContext) {
		claim, pod := Claim(), Pod("user", "", "data")
		create(ctx, Volume("v"), claim)
		eventuallyWaits(ctx, claim, "NoPodsUsingPVC")

		create(ctx, pod)
		eventuallyWaits(ctx, claim, "PodUsingPVC")
		Expect(users.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())

		eventuallyWaits(ctx, claim, "NoPodsUsingPVC")
	})

	It("an ephemeral volume gets its claim when the claim that had the name goes", func(ctx SpecContext) {
		pod, foreign := Pod("worker", ""), Claim(ClaimNamed("worker-scratch"))
		pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: Claim().Spec}},
		}}}
		create(ctx, foreign)
		eventuallyWaits(ctx, foreign, "NoMatchingVolume")
		create(ctx, pod)

		Expect(users.Delete(ctx, foreign)).To(Succeed())

		Eventually(func(g Gomega) {
			claim := Claim(ClaimNamed("worker-scratch"))
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
			g.Expect(metav1.IsControlledBy(claim, pod)).To(BeTrue())
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	})

	It("a VolumeAttributesClass goes when the claim that asks for it does", func(ctx SpecContext) {
		class := &storagev1.VolumeAttributesClass{
			ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: "disks.example.com", Parameters: map[string]string{"iops": "3000"},
		}
		claim := Claim(func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = &class.Name })
		create(ctx, class, claim)
		eventuallyWaits(ctx, claim, "NoMatchingVolume")
		Expect(users.Delete(ctx, class)).To(Succeed())
		Expect(users.Get(ctx, client.ObjectKeyFromObject(class), class)).To(Succeed())

		Expect(users.Delete(ctx, claim)).To(Succeed())

		eventuallyGone(ctx, class)
	})

	It("a claim goes back to the scheduler when its node is gone", func(ctx SpecContext) {
		claim := Claim(InClass("disks"))
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnSelectedNode, "gone")
		create(ctx, LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.StorageClass.VolumeBindingMode = storagev1.VolumeBindingWaitForFirstConsumer
		}), Pod("user", "", "data"), claim)

		eventuallyWaits(ctx, claim, "WaitForPodScheduled")
	})

	It("a claim that is refused goes back to the scheduler when its node goes", func(ctx SpecContext) {
		claim, node := Claim(InClass("disks"), Selecting("disk", "ssd")), Node("node-1")
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnSelectedNode, node.Name)
		create(ctx, LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.StorageClass.VolumeBindingMode = storagev1.VolumeBindingWaitForFirstConsumer
		}), node, claim)
		eventuallyWaits(ctx, claim, "ProvisioningFailed")

		Expect(users.Delete(ctx, node)).To(Succeed())

		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
			g.Expect(claim.Annotations).NotTo(HaveKey(volume.AnnSelectedNode))
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	})
})

func eventuallyGone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(users.Get(ctx, client.ObjectKeyFromObject(object), object))
	}).WithContext(ctx).WithTimeout(soon).Should(BeTrue())
}
