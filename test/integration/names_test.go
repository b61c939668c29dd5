package integration_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With names that no object can have", func() {
	BeforeEach(func() {
		startManager(fakeDisks(fake.New()))
		DeferCleanup(removeEverything)
	})

	It("a claim whose selected node has one goes back to the scheduler, and says so", func(ctx SpecContext) {
		create(ctx, LocalBackend("disks", onDisks("/var/lib/stowage", storagev1.VolumeBindingWaitForFirstConsumer)))
		claim := Claim(InClass("disks"))
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnSelectedNode, "node/1")
		create(ctx, claim)

		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
			g.Expect(claim.Annotations).NotTo(HaveKey(volume.AnnSelectedNode))
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
		eventuallyWaits(ctx, claim, "WaitForFirstConsumer")
	})

	It("a claim whose volume has one waits for it, and says so", func(ctx SpecContext) {
		claim := Claim(func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = "a/b" })
		create(ctx, claim)

		eventuallyWaits(ctx, claim, "VolumeNotFound")
	})
})
