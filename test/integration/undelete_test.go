package integration_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	"github.com/stowage-dev/stowage/internal/kubectl/list"
	"github.com/stowage-dev/stowage/internal/kubectl/undelete"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("kubectl stowage undelete, with the whole manager running", Ordered, func() {
	var (
		storage *fake.Backend
		pv      *corev1.PersistentVolume
	)

	BeforeEach(func(ctx SpecContext) {
		storage = fake.New()
		startManager(fakeDisks(storage))
		DeferCleanup(removeEverything)
		backend := LocalBackend("disks", func(backend *stowagev1alpha1.StorageBackend) { backend.Spec.Deletion.RetainFor.Duration = time.Hour })
		create(ctx, backend)
		DeferCleanup(func(ctx SpecContext) {
			atOnce := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletion":{"retainFor":"0s"}}}`))
			Expect(users.Patch(ctx, backend, atOnce)).To(Succeed())
		})
		claim := Claim(InClass("disks"))
		create(ctx, claim)
		eventuallyBound(ctx, claim)
		pv = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
		Expect(users.Delete(ctx, claim)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
			g.Expect(pv.Status.Phase).To(Equal(corev1.VolumeReleased))
			g.Expect(pv.Status.Reason).To(HavePrefix("UndeletableUntil"))
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	})

	It("changes nothing in a dry run", func(ctx SpecContext) {
		output, err := kubectltest.Run(ctx, undelete.New, pv.Name+" --dry-run=server", users)
		Expect(err).NotTo(HaveOccurred())
		Expect(output.Out).To(ContainSubstring("would be given to claim default/data, and keep its reclaim policy Delete"))
		now := &corev1.PersistentVolume{}
		Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(pv.ResourceVersion))
	})

	It("gives the data to a claim of another name, and restores the policy", func(ctx SpecContext) {
		listed, err := kubectltest.Run(ctx, list.New, "--retained", users)
		Expect(err).NotTo(HaveOccurred())
		Expect(listed.Out).To(ContainSubstring(pv.Name))

		output, err := kubectltest.Run(ctx, undelete.New, pv.Name+" --to default/restored", users)
		Expect(err).NotTo(HaveOccurred())
		Expect(output.Out).To(ContainSubstring("is bound to claim default/restored, with its data. Its reclaim policy is Delete"))

		Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
		Expect(pv.Status.Phase).To(Equal(corev1.VolumeBound))
		Expect(pv.Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimDelete))
		Expect(pv.Annotations).NotTo(HaveKey(undelete.PolicyAnnotation))
		Expect(storage.Has(pv.Name)).To(BeTrue())
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
			g.Expect(pv.Status.Reason).To(BeEmpty())
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	})
})
