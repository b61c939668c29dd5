package volumeagent_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
)

var _ = Describe("An image that was made", func() {
	var n *node

	BeforeEach(func() {
		needsPrograms("mkfs.ext4")
		n = newNode()
	})

	It("is lost when it is missing, though its directory is there, and is never made again", func(ctx context.Context) {
		volume := n.made(ctx, image("ext4"), sized("16Mi"))
		Expect(os.Remove(imagePath(volume))).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(ready(ctx, volume)).To(Equal("False Lost"))
		Expect(imagePath(volume)).NotTo(BeAnExistingFile())
	})

	It("gets its room again after its user left holes in it", func(ctx context.Context) {
		volume := n.made(ctx, image("ext4"), sized("16Mi"))
		file := openImage(volume)
		Expect(unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 8*mebibyte, 4*mebibyte)).To(Succeed())
		Expect(loopdev.IsAllocated(file)).To(BeFalse())
		n.reconcile(ctx, volume)
		Expect(loopdev.IsAllocated(file)).To(BeTrue())
	})

	DescribeTable("grows while it is in use, and what it holds stays", func(ctx context.Context, fsType, size, larger string) {
		needsGrowth(fsType)
		volume := n.made(ctx, image(fsType), sized(size))
		mounted := mountImage(ctx, volume)
		Expect(os.WriteFile(filepath.Join(mounted, "hello"), []byte("world"), 0o600)).To(Succeed())
		n.grow(ctx, volume, larger)
		Expect(read(ctx, volume).Status.Capacity.String()).To(Equal(larger))
		Expect(loopdev.IsAllocated(openImage(volume))).To(BeTrue())

		By("being resized where it is mounted")
		loop, err := loopdev.Attach(ctx, openImage(volume), loopdev.ForFileSystem)
		Expect(err).NotTo(HaveOccurred())
		defer loop.Close()
		for range 2 {
			Expect(fileSystems.Grow(ctx, loop.Path(), mounted, fsType)).To(Succeed())
		}
		Expect(sizeOf(mounted)).To(BeNumerically(">", openImageSize(volume)*3/4))
		Expect(os.ReadFile(filepath.Join(mounted, "hello"))).To(BeEquivalentTo("world"))
	},
		Entry("ext4", "ext4", "16Mi", "64Mi"),
		Entry("xfs", "xfs", "300Mi", "500Mi"),
	)

	It("keeps what it has when the disk has no more, and reports that", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "ext4", 128*mebibyte)
		volume := n.made(ctx, image("ext4"), sized("16Mi"))
		n.grow(ctx, volume, "512Mi")
		verdict, message := conditionOf(ctx, volume, stowagev1alpha1.GrantedCondition)
		Expect(verdict).To(Equal("False Exhausted"))
		Expect(message).To(ContainSubstring("512Mi is requested"))
		Expect(read(ctx, volume).Status.Capacity.String()).To(Equal("16Mi"))
		Expect(openImage(volume).Stat()).To(HaveField("Size()", BeEquivalentTo(16*mebibyte)))
	})

	It("has its new size after a crash before the report", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "ext4", 128*mebibyte)
		volume := n.made(ctx, image("ext4"), sized("16Mi"))
		Expect(loopdev.Allocate(openImage(volume), 96*mebibyte)).To(Succeed())
		n.grow(ctx, volume, "96Mi")
		Expect(read(ctx, volume).Status.Capacity.String()).To(Equal("96Mi"))
	})

	It("has room to grow after a crash during growth", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "ext4", 128*mebibyte)
		volume := n.made(ctx, image("ext4"), sized("16Mi"))
		Expect(unix.Fallocate(int(openImage(volume).Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 96*mebibyte)).To(Succeed())
		n.grow(ctx, volume, "96Mi")
		Expect(read(ctx, volume).Status.Capacity.String()).To(Equal("96Mi"))
	})

	It("keeps the room that it has after a crash, though no status has it", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "ext4", 256*mebibyte)
		volume := n.made(ctx, image("ext4"), sparse, sized("16Mi"))
		Expect(openImage(volume).Truncate(192 * mebibyte)).To(Succeed())
		n.reconciler = volumeagent.NewReconciler(n.options(n.api))
		another := n.volume(ctx, image("ext4"), sized("64Mi"))
		n.reconcile(ctx, another)
		Expect(provisioned(ctx, another)).To(Equal("False Exhausted"))
	})

	It("is removed only once it has no loop device, and leaves nothing", func(ctx context.Context) {
		volume := n.made(ctx, image("ext4"), sized("16Mi"))
		loop := attach(ctx, volume, loopdev.ForBlock)
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		verdict, message := conditionOf(ctx, volume, stowagev1alpha1.ReadyCondition)
		Expect(verdict).To(Equal("False InUse"))
		Expect(message).To(ContainSubstring(loop.Path()))
		Expect(imagePath(volume)).To(BeAnExistingFile())

		Expect(loop.Detach(ctx)).To(Succeed())
		n.reconcile(ctx, volume)
		Expect(read(ctx, volume)).To(BeNil())
		Expect(os.ReadDir(filepath.Join(string(volume.Spec.Path), ".deleting"))).To(BeEmpty())
	})

	It("can't be attached any more once its removal began, not even by a process that had it open", func(ctx context.Context) {
		needsMounts()
		volume := n.made(ctx, image("ext4"), sized("16Mi"))
		file := openImage(volume)
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		_, err := loopdev.Attach(ctx, file, loopdev.ForFileSystem)
		Expect(err).To(MatchError(device.ErrGone))
	})
})
