package volumeagent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
)

// retain does what the manager does to a volume whose PersistentVolume is set to Retain.
func retain(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	GinkgoHelper()
	volume = read(ctx, volume)
	before := volume.DeepCopy()
	volume.Spec.RemoveData = false
	volume.Labels = map[string]string{stowagev1alpha1.RetainedLabel: "true"}
	return admin.Patch(ctx, volume, client.MergeFrom(before))
}

var _ = Describe("A volume with an order to remove it", func() {
	var n *node
	var volume *stowagev1alpha1.NodeVolume
	var content string

	// pass goes once over the volume, as a client sees it.
	pass := func(ctx context.Context, seen client.Client) {
		GinkgoHelper()
		_, err := volumeagent.NewReconciler(n.options(seen)).Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)})
		Expect(err).NotTo(HaveOccurred())
	}

	BeforeEach(func(ctx context.Context) {
		n = newNode()
		volume = n.made(ctx)
		content = filepath.Join(dir(volume), "hello")
		Expect(os.WriteFile(content, nil, 0o600)).To(Succeed())
		reclaim(ctx, volume)
	})

	It("isn't touched before it is written that its removal begins", func(ctx context.Context) {
		n.reconciler = volumeagent.NewReconciler(n.options(refusing(volume.Name)))
		n.reconcileDisks(ctx)
		_, err := n.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)})

		Expect(err).To(MatchError(ContainSubstring("the API server is away")))
		Expect(content).To(BeAnExistingFile())
		Expect(read(ctx, volume).Status.Removing).To(BeFalse())
	})

	It("stays when the order is withdrawn before its agent begins, though a cache still has it", func(ctx context.Context) {
		before := read(ctx, volume)
		Expect(retain(ctx, volume)).To(Succeed())

		pass(ctx, &staleClient{Client: n.api, seen: before})
		pass(ctx, n.api)

		Expect(content).To(BeAnExistingFile())
		verdict, message := conditionOf(ctx, volume, stowagev1alpha1.ReadyCondition)
		Expect(verdict).To(Equal("False Deleting"))
		Expect(message).To(ContainSubstring("its PersistentVolume says Retain"))
	})

	It("is maintained again when the order was withdrawn", func(ctx context.Context) {
		Expect(retain(ctx, volume)).To(Succeed())
		grown := read(ctx, volume)
		grown.Spec.Capacity = resource.MustParse("200Mi")
		Expect(admin.Update(ctx, grown)).To(Succeed())

		n.reconcile(ctx, volume)

		Expect(read(ctx, volume).Status.Capacity.String()).To(Equal("200Mi"))
		Expect(content).To(BeAnExistingFile())
	})

	It("goes when the order is given again", func(ctx context.Context) {
		Expect(retain(ctx, volume)).To(Succeed())
		n.reconcile(ctx, volume)
		reclaim(ctx, read(ctx, volume))

		n.reconcile(ctx, volume)

		Expect(read(ctx, volume)).To(BeNil())
		Expect(dir(volume)).NotTo(BeADirectory())
	})

	It("goes, as did one of its name before, whose end no cache showed", func(ctx context.Context) {
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		again := n.volume(ctx, func(again *stowagev1alpha1.NodeVolume) { again.Name = volume.Name })
		n.reconcile(ctx, again)
		reclaim(ctx, read(ctx, again))

		n.reconcile(ctx, again)

		Expect(read(ctx, again)).To(BeNil())
		Expect(dir(again)).NotTo(BeADirectory())
	})

	It("can't be kept any more once its removal began, and goes after a crash right then", func(ctx context.Context) {
		immovable := mounttest.Refusal{First: unix.SYS_RENAMEAT2, Last: unix.SYS_RENAMEAT2, Errno: unix.EIO}
		Expect(immovable.Under(GinkgoTB(), func() error {
			defer GinkgoRecover()
			n.reconcile(ctx, volume)
			return nil
		})).To(Succeed())
		Expect(content).To(BeAnExistingFile())
		Expect(read(ctx, volume).Status.Removing).To(BeTrue())

		Expect(retain(ctx, volume)).To(MatchError(ContainSubstring("has begun to remove the data")))
		pass(ctx, n.api)

		Expect(read(ctx, volume)).To(BeNil())
		Expect(dir(volume)).NotTo(BeADirectory())
	})

	It("can be kept while a mount keeps its removal from beginning", func(ctx context.Context) {
		needsMounts()
		target := filepath.Join(n.base, "target")
		Expect(os.Mkdir(target, 0o755)).To(Succeed())
		bindMount(dir(volume), target)
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("False InUse"))

		Expect(retain(ctx, volume)).To(Succeed())
		Expect(mount.UnmountBelow(kernel, target)).To(Succeed())
		n.reconcile(ctx, volume)

		Expect(content).To(BeAnExistingFile())
	})

	It("stays when another object has its name, and the cache is stale", func(ctx context.Context) {
		before := read(ctx, volume)
		before.Status.Removing = true
		before.DeepCopyInto(volume)
		forced := read(ctx, volume)
		forced.Finalizers = nil
		Expect(admin.Update(ctx, forced)).To(Succeed())
		n.again(ctx, volume)

		pass(ctx, &staleClient{Client: n.api, seen: before})

		Expect(content).To(BeAnExistingFile())
	})
})

// again makes the NodeVolume of a volume that is on the disk once more.
func (n *node) again(ctx context.Context, volume *stowagev1alpha1.NodeVolume) *stowagev1alpha1.NodeVolume {
	GinkgoHelper()
	again := &stowagev1alpha1.NodeVolume{Spec: *volume.Spec.DeepCopy()}
	again.Name, again.Finalizers = volume.Name, []string{stowagev1alpha1.NodeVolumeFinalizer}
	again.Spec.RemoveData, again.Spec.Adopt = false, true
	Expect(admin.Create(ctx, again)).To(Succeed())
	return again
}

// refusing writes no status.
func refusing(name string) client.Client {
	plain, err := client.NewWithWatch(server.Config, client.Options{Scheme: objects})
	Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(plain, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, plain client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if object.GetName() == name {
				return errors.New("the API server is away")
			}
			return plain.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
}
