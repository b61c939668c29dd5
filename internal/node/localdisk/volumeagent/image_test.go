package volumeagent_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	utilexec "k8s.io/utils/exec"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
)

var _ = Describe("An image that is asked for", func() {
	var n *node

	BeforeEach(func() {
		needsPrograms("mkfs.ext4", "mkfs.xfs")
		n = newNode()
	})

	DescribeTable("has exactly its size on the disk, its file system, and no loop device", func(ctx context.Context, disk, fsType string) {
		n.formattedDisk(ctx, "fast", disk, gibibyte)
		volume := n.made(ctx, image(fsType), asking("300Mi"))

		file := openImage(volume)
		info, err := file.Stat()
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Size()).To(BeEquivalentTo(300 * mebibyte))
		Expect(info.Mode()).To(BeEquivalentTo(0o600))
		Expect(loopdev.IsAllocated(file)).To(BeTrue())
		Expect(fileSystems.Probe(ctx, file.Name())).To(Equal(fsType))
		Expect(loopdev.Find(file)).To(BeNil())
		Expect(read(ctx, volume).Status.Path).To(Equal(dir(volume)))
		Expect(entries(volume)).To(ConsistOf(volume.Name))
	},
		Entry("ext4 on ext4", "ext4", "ext4"), Entry("xfs on ext4", "ext4", "xfs"),
		Entry("ext4 on xfs", "xfs", "ext4"), Entry("xfs on xfs", "xfs", "xfs"),
		Entry("ext4 on btrfs", "btrfs", "ext4"), Entry("xfs on btrfs", "btrfs", "xfs"),
	)

	It("holds no more than it was asked to have, whatever its disk has", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "ext4", 128*mebibyte)
		volume := n.made(ctx, image("ext4"), asking("16Mi"))
		mounted := mountImage(ctx, volume)
		Expect(fill(filepath.Join(mounted, "file"), 32*mebibyte)).To(MatchError(unix.ENOSPC))
	})

	It("can be written wholly, even when others have filled the disk", func(ctx context.Context) {
		disk := n.formattedDisk(ctx, "fast", "btrfs", 256*mebibyte)
		volume := n.made(ctx, block, asking("64Mi"))
		Expect(fill(filepath.Join(disk, "others"), 256*mebibyte)).To(MatchError(unix.ENOSPC))
		path := attach(ctx, volume, loopdev.ForBlock).Path()
		for range 2 {
			Expect(overwrite(path, 64*mebibyte)).To(Succeed())
		}
	})

	It("is all zeros, and no byte longer, where it is a block device", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "xfs", 320*mebibyte)
		volume := n.made(ctx, block, asking("1Mi"))
		content, err := os.ReadFile(imagePath(volume))
		Expect(err).NotTo(HaveOccurred())
		Expect(content).To(Equal(make([]byte, mebibyte)))
		path := attach(ctx, volume, loopdev.ForBlock).Path()
		Expect(overwrite(path, mebibyte)).To(Succeed())
		Expect(overwrite(path, mebibyte+1)).To(MatchError(unix.ENOSPC))
	})

	It("takes no room for what isn't written where it is asked to be sparse, and counts all the same", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "ext4", 64*mebibyte)
		volume := n.made(ctx, image("ext4"), sparse, asking("40Mi"))
		Expect(loopdev.IsAllocated(openImage(volume))).To(BeFalse())
		another := n.volume(ctx, image("ext4"), sparse, asking("40Mi"))
		n.reconcile(ctx, another)
		Expect(provisioned(ctx, another)).To(Equal("False Exhausted"))
	})

	DescribeTable("is refused, with a message that helps, and leaves nothing", func(ctx context.Context, reason, message string, options ...func(*stowagev1alpha1.NodeVolume)) {
		volume := n.volume(ctx, options...)
		n.reconcile(ctx, volume)
		verdict, text := said(ctx, volume, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False " + reason))
		Expect(text).To(ContainSubstring(message))
		Expect(entries(volume)).To(BeEmpty())
	},
		Entry("where it is too small for xfs", stowagev1alpha1.ReasonInvalid, "xfs needs at least 300Mi", image("xfs"), asking("299Mi")),
		Entry("where it is too small for ext4", stowagev1alpha1.ReasonInvalid, "ext4 needs at least 8Mi", image("ext4"), asking("7Mi")),
		Entry("where it isn't of whole sectors", stowagev1alpha1.ReasonInvalid, "must be a multiple of 512", image("ext4"), asking("10000001")),
		Entry("where it is larger than the disk", stowagev1alpha1.ReasonExhausted, "no room on the disk: 1Pi is asked for", image("ext4"), asking("1Pi")),
	)

	It("says which package to install where the programs of its file system are missing", func(ctx context.Context) {
		n.reconciler.Store.FileSystems = filesystem.NewFileSystems(nothingInstalled{utilexec.New()})
		volume := n.volume(ctx, image("xfs"), asking("300Mi"))
		result := n.reconcile(ctx, volume)
		verdict, message := said(ctx, volume, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Unavailable"))
		Expect(message).To(And(ContainSubstring("mkfs.xfs isn't installed"), ContainSubstring("package xfsprogs")))
		Expect(result.RequeueAfter).To(BeNumerically(">", 0))
	})

	It("is default ext4, also where an older manager asked for it", func(ctx context.Context) {
		volume := n.made(ctx, image(""), asking("16Mi"))
		Expect(fileSystems.Probe(ctx, imagePath(volume))).To(Equal("ext4"))
	})
})
