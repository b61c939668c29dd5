package volumeagent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
)

var _ = Describe("A directory that is requested as a copy", func() {
	var (
		n      *node
		source *stowagev1alpha1.NodeVolume
	)

	BeforeEach(func(ctx context.Context) {
		n = newNode()
		source = n.made(ctx)
		Expect(os.WriteFile(filepath.Join(dir(source), "hello"), []byte("world"), 0o640)).To(Succeed())
	})

	It("holds what its source does, and is open to as many", func(ctx context.Context) {
		needsMounts() // only root gives directories away
		Expect(errors.Join(os.Chown(dir(source), 0, 2000), os.Chmod(dir(source), 0o775|os.ModeSetgid))).To(Succeed())
		clone := n.made(ctx, copyOf(source))
		Expect(os.ReadFile(filepath.Join(dir(clone), "hello"))).To(BeEquivalentTo("world"))
		info, err := os.Stat(dir(clone))
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode()).To(Equal(os.ModeDir | os.ModeSetgid | 0o775))
		Expect(entries(source)).To(ConsistOf(source.Name, clone.Name))
	})

	It("is its own: what is written to one isn't in the other", func(ctx context.Context) {
		clone := n.made(ctx, copyOf(source))
		Expect(os.WriteFile(filepath.Join(dir(clone), "hello"), []byte("other"), 0o640)).To(Succeed())
		Expect(os.ReadFile(filepath.Join(dir(source), "hello"))).To(BeEquivalentTo("world"))
	})

	It("waits until its source is mounted nowhere", func(ctx context.Context) {
		needsMounts()
		pod := GinkgoT().TempDir()
		opened, err := os.Open(dir(source))
		Expect(err).NotTo(HaveOccurred())
		defer opened.Close()
		Expect(kernel.Bind(opened, pod, mount.ReadWrite)).To(Succeed())
		DeferCleanup(func() { Expect(mount.UnmountBelow(kernel, pod)).To(Succeed()) })

		clone := n.volume(ctx, copyOf(source))
		n.reconcile(ctx, clone)
		Expect(provisioned(ctx, clone)).To(Equal("False InUse"))
		Expect(entries(source)).To(ConsistOf(source.Name))
		Expect(kernel.Unmount(pod)).To(Succeed())
		n.reconcile(ctx, clone)
		Expect(ready(ctx, clone)).To(Equal("True Ready"))
	})

	It("keeps its source from being removed until it is made", func(ctx context.Context) {
		clone := n.volume(ctx, copyOf(source))
		reclaim(ctx, source)
		Expect(n.reconcile(ctx, source).RequeueAfter).To(BeNumerically(">", 0))
		verdict, message := conditionOf(ctx, source, stowagev1alpha1.ReadyCondition)
		Expect(verdict).To(Equal("False InUse"))
		Expect(message).To(ContainSubstring("it is to be copied to NodeVolume " + clone.Name))

		n.reconcile(ctx, clone)
		Expect(os.ReadFile(filepath.Join(dir(clone), "hello"))).To(BeEquivalentTo("world"))
		n.reconcile(ctx, source)
		Expect(read(ctx, source)).To(BeNil())
	})

	It("keeps nothing from being removed once it is to go itself", func(ctx context.Context) {
		clone := n.volume(ctx, copyOf(source))
		reclaim(ctx, clone)
		reclaim(ctx, source)
		n.reconcile(ctx, source)
		Expect(read(ctx, source)).To(BeNil())
		n.reconcile(ctx, clone)
		Expect(read(ctx, clone)).To(BeNil())
	})

	It("is refused, and never made empty, where its source is gone", func(ctx context.Context) {
		reclaim(ctx, source)
		n.reconcile(ctx, source)
		clone := n.volume(ctx, copyOf(source))
		Expect(n.reconcile(ctx, clone).RequeueAfter).To(BeZero())
		verdict, message := conditionOf(ctx, clone, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Invalid"))
		Expect(message).To(ContainSubstring("is gone: create the claim again, without dataSource"))
		Expect(entries(source)).To(BeEmpty())
	})

	It("waits for a source whose disk isn't mounted", func(ctx context.Context) {
		Expect(os.Rename(dir(source), filepath.Join(n.base, "away"))).To(Succeed())
		clone := n.volume(ctx, copyOf(source))
		Expect(n.reconcile(ctx, clone).RequeueAfter).To(BeNumerically(">", 0))
		Expect(provisioned(ctx, clone)).To(Equal("False Unavailable"))
		Expect(os.Rename(filepath.Join(n.base, "away"), dir(source))).To(Succeed())
		n.reconcile(ctx, clone)
		Expect(ready(ctx, clone)).To(Equal("True Ready"))
	})

	It("is made for another namespace where the manager says that it may have it", func(ctx context.Context) {
		clone := n.made(ctx, copyOf(source), func(volume *stowagev1alpha1.NodeVolume) {
			volume.Spec.ClaimRef.Namespace, volume.Spec.SourceNamespace = "other", source.Spec.ClaimRef.Namespace
		})
		Expect(os.ReadFile(filepath.Join(dir(clone), "hello"))).To(BeEquivalentTo("world"))
	})

	DescribeTable("is refused where its source is", func(ctx context.Context, message string, change func(*stowagev1alpha1.NodeVolume)) {
		clone := n.volume(ctx, copyOf(source), change)
		n.reconcile(ctx, clone)
		verdict, text := conditionOf(ctx, clone, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Invalid"))
		Expect(text).To(ContainSubstring(message))
		Expect(entries(source)).To(ConsistOf(source.Name))
	},
		Entry("another namespace's", "belongs to another namespace", func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.ClaimRef.Namespace = "other" }),
		Entry("of another namespace than it is said", "belongs to another namespace", func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.SourceNamespace = "other" }),
		Entry("another backend's", "belongs to backend fast", func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.Backend = "slow" }),
		Entry("of another layout", "is of another layout", func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.Layout = stowagev1alpha1.LayoutImage }),
		Entry("itself", "is no other volume", func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.Source = volume.Name }),
		Entry("nowhere", "is gone", func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.Source = "pvc-unknown" }),
	)

	It("is adopted after a crash between making and reporting it, though its source is gone", func(ctx context.Context) {
		clone := n.made(ctx, copyOf(source))
		forgotten := read(ctx, clone)
		forgotten.Status = stowagev1alpha1.NodeVolumeStatus{}
		Expect(admin.Status().Update(ctx, forgotten)).To(Succeed())
		Expect(client.IgnoreNotFound(dropFinalizer(ctx, source))).To(Succeed())
		n.reconcile(ctx, clone)
		Expect(ready(ctx, clone)).To(Equal("True Ready"))
		Expect(os.ReadFile(filepath.Join(dir(clone), "hello"))).To(BeEquivalentTo("world"))
	})

	It("leaves nothing where the disk turns out to be too small for what is in its source", func(ctx context.Context) {
		n.disk("small", 64*mebibyte)
		large := n.made(ctx, at(filepath.Join(n.base, "small")), sized("10Mi"))
		Expect(fill(filepath.Join(dir(large), "more-than-it-asked-for"), 40*mebibyte)).To(Succeed())
		clone := n.volume(ctx, copyOf(large))
		n.reconcile(ctx, clone)
		Expect(provisioned(ctx, clone)).To(Equal("False Exhausted"))
		Expect(entries(large)).To(ConsistOf(large.Name))
	})
})

// dropFinalizer lets an object go whose data stays, as a person may.
func dropFinalizer(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	again := read(ctx, volume)
	again.Finalizers = nil
	return errors.Join(admin.Update(ctx, again), admin.Delete(ctx, again))
}
