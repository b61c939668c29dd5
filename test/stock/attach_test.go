package stock_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A disk that pods use", func() {
	var claim *corev1.PersistentVolumeClaim
	var pod *corev1.Pod
	var pv *corev1.PersistentVolume

	BeforeEach(func(ctx SpecContext) {
		claim, pod = Claim(ClaimNamed("moving"), InClass(cloud)), on(Pod("first", "", "moving"), "small")
		create(ctx, claim, pod)
		tidy(pod, claim)
		pv = eventuallyBound(ctx, claim)
		eventuallyAttachedTo(ctx, "small", pv)
		Expect(world.attachedTo(ctx, pv.Name)).To(HaveExactElements("small"))
	})

	It("follows them from node to node, once the first has unmounted it", func(ctx SpecContext) {
		setInUse(ctx, "small", pv)
		second := on(Pod("second", "", "moving"), "large")
		create(ctx, second)
		tidy(second)
		remove(ctx, pod)
		Consistently(world.attachedTo).WithArguments(ctx, pv.Name).WithTimeout(still).Should(HaveExactElements("small"))

		setInUse(ctx, "small")

		eventuallyAttachedTo(ctx, "large", pv)
		Expect(world.attachedTo(ctx, pv.Name)).To(HaveExactElements("large"))
		remove(ctx, second)
		Eventually(world.attachedTo).WithArguments(ctx, pv.Name).Should(BeEmpty())
	})

	It("is detached though the cloud refuses at first, and takes its time then", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { world.well(ctx); world.slow(ctx, "100ms") })
		world.fault(ctx, `{"method":"instances.detachDisk","count":3,"status":503}`)
		world.slow(ctx, "3s")

		remove(ctx, pod)

		eventuallyGone(ctx, attachmentOf(pv, "small"))
		Expect(world.attachedTo(ctx, pv.Name)).To(BeEmpty())
	})

	It("is attached though the manager is down when the pod is placed", func(ctx SpecContext) {
		Expect(world.manager.Kill()).To(Succeed())
		remove(ctx, pod)
		second := on(Pod("second", "", "moving"), "large")
		create(ctx, second)
		tidy(second)
		eventuallyPlaced(ctx, second)
		Eventually(func(g Gomega) {
			attachment := attachmentOf(pv, "small")
			g.Expect(users.Get(ctx, keyOf(attachment), attachment)).To(Succeed())
			g.Expect(attachment.DeletionTimestamp.IsZero()).To(BeFalse())
		}).Should(Succeed())

		Expect(world.manager.Start()).To(Succeed())

		eventuallyAttachedTo(ctx, "large", pv)
		Expect(world.attachedTo(ctx, pv.Name)).To(HaveExactElements("large"))
	})

	It("is taken from a node that is out of service, and from none that is Ready", func(ctx SpecContext) {
		setInUse(ctx, "small", pv)
		DeferCleanup(func(ctx SpecContext) {
			setInUse(ctx, "small")
			setOutOfService(ctx, "small", false)
			setReady(ctx, "small", corev1.ConditionTrue)
		})
		setOutOfService(ctx, "small", true)
		remove(ctx, pod)
		second := on(Pod("second", "", "moving"), "large")
		create(ctx, second)
		tidy(second)
		Consistently(world.attachedTo).WithArguments(ctx, pv.Name).WithTimeout(still).Should(HaveExactElements("small"))

		setReady(ctx, "small", corev1.ConditionUnknown)

		eventuallyAttachedTo(ctx, "large", pv)
		Expect(world.attachedTo(ctx, pv.Name)).To(HaveExactElements("large"))
	})
})

// eventuallyAttachedTo waits until a volume is in volumesAttached of a node, and its
// attachment is recorded.
func eventuallyAttachedTo(ctx context.Context, name string, pv *corev1.PersistentVolume) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		node := &corev1.Node{}
		g.Expect(users.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
		g.Expect(node.Status.VolumesAttached).To(ContainElement(
			HaveField("Name", volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle))))
		attachment := attachmentOf(pv, name)
		g.Expect(users.Get(ctx, keyOf(attachment), attachment)).To(Succeed())
		g.Expect(attachment.Status.Attached).To(BeTrue())
	}).WithContext(ctx).WithTimeout(2 * soon).Should(Succeed())
}

func attachmentOf(pv *corev1.PersistentVolume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{
		Name: volume.AttachmentName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle, node),
	}}
}

// setOutOfService does what an administrator does once a node's machine is off for sure.
func setOutOfService(ctx context.Context, name string, is bool) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(users.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	kept := node.Spec.Taints[:0]
	for _, taint := range node.Spec.Taints {
		if taint.Key != corev1.TaintNodeOutOfService {
			kept = append(kept, taint)
		}
	}
	node.Spec.Taints = kept
	if is {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute,
		})
	}
	Expect(users.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
}
