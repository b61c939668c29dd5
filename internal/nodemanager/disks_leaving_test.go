package nodemanager_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
)

// beginsToLeave deletes a claim's VolumeAttachment, which a finalizer keeps.
func (w *world) beginsToLeave(ctx context.Context, claim *corev1.PersistentVolumeClaim) *storagev1.VolumeAttachment {
	GinkgoHelper()
	object := &storagev1.VolumeAttachment{}
	name := volume.AttachmentName(stowagev1alpha1.GCEDriver, "pvc-"+string(claim.UID), w.node)
	Expect(admin.Get(ctx, client.ObjectKey{Name: name}, object)).To(Succeed())
	object.Finalizers = []string{"external-attacher/gce-stowage-dev"}
	Expect(admin.Update(ctx, object)).To(Succeed())
	Expect(admin.Delete(ctx, object)).To(Succeed())
	return object
}

// withdraw takes a claim's disk out of what is attached as the manager does: in a version
// of the node in which it isn't in use.
func (w *world) withdraw(ctx context.Context, claim *corev1.PersistentVolumeClaim) func() bool {
	return func() bool {
		node := &corev1.Node{}
		if admin.Get(ctx, client.ObjectKey{Name: w.node}, node) != nil || slices.Contains(node.Status.VolumesInUse, w.statusName(claim)) {
			return false
		}
		node.Status.VolumesAttached = nil
		return admin.Status().Update(ctx, node) == nil
	}
}

// finishLeaving takes the finalizer off.
func finishLeaving(ctx context.Context, object *storagev1.VolumeAttachment) {
	GinkgoHelper()
	before := object.DeepCopy()
	object.Finalizers = nil
	Expect(admin.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("A volume whose VolumeAttachment was deleted", func() {
	var (
		w          *world
		claim      *corev1.PersistentVolumeClaim
		first, pod *corev1.Pod
	)

	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		w.register(ctx)
		claim = w.diskClaim(ctx, "data")
		first, pod = w.pod("first", fromClaim("data")), w.pod("web", fromClaim("data"))
		w.startAgent()
		w.attach(ctx, claim)
	})

	It("goes, and comes back to the pod that began to wait for it while it left", func(ctx context.Context) {
		object := w.beginsToLeave(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(ContainSubstring("to be attached"))

		Eventually(w.withdraw(ctx, claim)).Should(BeTrue())
		finishLeaving(ctx, object)
		w.attachment(ctx, claim)
		w.sayAttached(ctx, claim)

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(w.volumesInUse(ctx)()).To(ConsistOf(w.statusName(claim)))
	})

	It("stays in use by the pod that has it, and goes with that pod though another one waits", func(ctx context.Context) {
		Expect(admin.Create(ctx, first)).To(Succeed())
		Eventually(volumesReady(ctx, first)).Should(HavePrefix("True"))
		w.beginsToLeave(ctx, claim)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(ContainSubstring("to be attached"))
		Consistently(w.volumesInUse(ctx)).Should(ConsistOf(w.statusName(claim)))

		Expect(admin.Delete(ctx, first)).To(Succeed())

		Eventually(w.withdraw(ctx, claim)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
	})
})
