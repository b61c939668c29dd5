package volumeagent_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
)

var _ = Describe("An image that is requested as a copy", func() {
	var n *node

	BeforeEach(func() {
		needsPrograms("mkfs.ext4", "mkfs.xfs")
		n = newNode()
	})

	DescribeTable("holds what its source does, and takes the room that its disk can't share", func(ctx context.Context, system string, shares bool) {
		disk := n.formattedDisk(ctx, "fast", system, 512*mebibyte)
		source := n.made(ctx, block, sized("64Mi"))
		Expect(overwrite(imagePath(source), 64*mebibyte)).To(Succeed())
		before := freeOn(disk)

		clone := n.made(ctx, copyOf(source))

		Expect(exec.CommandContext(ctx, "cmp", imagePath(source), imagePath(clone)).CombinedOutput()).To(BeEmpty())
		Expect(loopdev.IsAllocated(openImage(clone))).To(BeTrue())
		Expect(before - freeOn(disk)).To(satisfy(shares, BeNumerically("<", 16*mebibyte), BeNumerically(">=", 60*mebibyte)))
		Expect(entries(source)).To(ConsistOf(source.Name, clone.Name))
	}, Entry("ext4", "ext4", false), Entry("xfs", "xfs", true), Entry("btrfs", "btrfs", true))

	DescribeTable("has the size that it requests, and its file system can grow to it", func(ctx context.Context, system string) {
		needsGrowth("xfs")
		n.formattedDisk(ctx, "fast", system, 1200*mebibyte)
		source := n.made(ctx, image("xfs"), sized("300Mi"))
		greet(mountUntil(ctx, source))
		clone := n.made(ctx, copyOf(source), sized("500Mi"))
		Expect(openImageSize(clone)).To(BeEquivalentTo(500 * mebibyte))
		Expect(loopdev.IsAllocated(openImage(clone))).To(BeTrue())

		// Beside its source, whose file system has the same UUID.
		beside, _ := mountNoUUID(ctx, source)
		at, loop := mountNoUUID(ctx, clone)
		Expect(fileSystems.Grow(ctx, loop, at, "xfs")).To(Succeed())
		Expect(sizeOf(at)).To(BeNumerically(">", sizeOf(beside)+150*mebibyte))
		Expect(os.ReadFile(filepath.Join(at, "hello"))).To(BeEquivalentTo("world"))
	}, Entry("on ext4", "ext4"), Entry("on xfs", "xfs"), Entry("on btrfs", "btrfs"))

	DescribeTable("is made of one that a pod writes, where the disk can share", func(ctx context.Context, system string) {
		n.formattedDisk(ctx, "fast", system, 512*mebibyte)
		source := n.made(ctx, image("ext4"), sized("64Mi"))
		Expect(os.WriteFile(filepath.Join(mountImage(ctx, source), "unsynced"), []byte("written"), 0o600)).To(Succeed())

		clone := n.made(ctx, copyOf(source))

		loop := attach(ctx, clone, loopdev.ForFileSystem)
		Expect(fileSystems.Check(ctx, loop.Path(), "ext4")).To(Succeed())
		at := mountDevice(loop, "ext4", GinkgoT().TempDir())
		Expect(os.ReadFile(filepath.Join(at, "unsynced"))).To(BeEquivalentTo("written"))
	}, Entry("xfs", "xfs"), Entry("btrfs", "btrfs"))

	It("holds what a pod wrote to a block device, where the disk can share", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "xfs", 512*mebibyte)
		source := n.made(ctx, block, sized("16Mi"))
		path := attach(ctx, source, loopdev.ForBlock).Path()
		Expect(os.WriteFile(path, []byte("unsynced"), 0)).To(Succeed())
		clone := n.made(ctx, copyOf(source))
		content, err := os.ReadFile(imagePath(clone))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(content)).To(HavePrefix("unsynced"))
	})

	It("waits until its source is no longer in use where the disk can't share", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "ext4", 256*mebibyte)
		source := n.made(ctx, image("ext4"), sized("64Mi"))
		mounted := mountImage(ctx, source)
		clone := n.volume(ctx, copyOf(source))
		Expect(n.reconcile(ctx, clone).RequeueAfter).To(BeNumerically(">", 0))
		verdict, message := conditionOf(ctx, clone, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False InUse"))
		Expect(message).To(ContainSubstring("is copied when no pod uses it"))
		Expect(entries(source)).To(ConsistOf(source.Name))

		Expect(mount.UnmountBelow(kernel, mounted)).To(Succeed())
		n.reconcile(ctx, clone)
		Expect(ready(ctx, clone)).To(Equal("True Ready"))
	})

	It("waits while another process has its source reserved", func(ctx context.Context) {
		needsMounts()
		source := n.made(ctx, image("ext4"), sized("16Mi"))
		held, err := loopdev.Reserve(ctx, openImage(source))
		Expect(err).NotTo(HaveOccurred())
		clone := n.volume(ctx, copyOf(source))
		n.reconcile(ctx, clone)
		Expect(provisioned(ctx, clone)).To(Equal("False InUse"))
		Expect(held.Close()).To(Succeed())
		n.reconcile(ctx, clone)
		Expect(ready(ctx, clone)).To(Equal("True Ready"))
	})

	It("counts with all of its size, whatever it shares", func(ctx context.Context) {
		n.formattedDisk(ctx, "fast", "xfs", 400*mebibyte)
		source := n.made(ctx, block, sized("150Mi"))
		n.made(ctx, copyOf(source))
		another := n.volume(ctx, copyOf(source))
		n.reconcile(ctx, another)
		Expect(provisioned(ctx, another)).To(Equal("False Exhausted"))
		Expect(entries(source)).NotTo(ContainElement(ContainSubstring(another.Name)))
	})

	DescribeTable("has another volumeMode than a snapshot, and what that holds is never formatted",
		func(ctx context.Context, holds string, of, asked func(*stowagev1alpha1.NodeVolume)) {
			n.formattedDisk(ctx, "fast", "xfs", 512*mebibyte)
			source := n.made(ctx, of, sized("64Mi"))
			if holds != "" {
				Expect(os.WriteFile(imagePath(source), []byte(holds), 0o600)).To(Succeed())
				Expect(os.Truncate(imagePath(source), 64*mebibyte)).To(Succeed())
			}
			snapshot := n.made(ctx, snapshotOf(source))

			restored := n.made(ctx, copyOf(snapshot), func(volume *stowagev1alpha1.NodeVolume) {
				volume.Spec.SnapshotUID, volume.Spec.FSType, volume.Spec.VolumeMode = "", "", ""
			}, asked)

			Expect(exec.CommandContext(ctx, "cmp", imagePath(snapshot), imagePath(restored)).CombinedOutput()).To(BeEmpty())
		},
		Entry("a device of what was a file system", "", image("ext4"), block),
		Entry("a file system of a device that holds none", "rows of a database", block, image("")),
		Entry("a file system of an empty device", "", block, image("ext4")),
	)

	It("is refused with another volumeMode than a volume: no administrator lets that", func(ctx context.Context) {
		source := n.made(ctx, block, sized("64Mi"))
		clone := n.volume(ctx, copyOf(source), image("ext4"), func(volume *stowagev1alpha1.NodeVolume) { volume.Spec.VolumeMode = "" })
		n.reconcile(ctx, clone)
		verdict, message := conditionOf(ctx, clone, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Invalid"))
		Expect(message).To(ContainSubstring("is of another layout, volumeMode or fsType"))
	})

	It("is refused where its source has grown beyond it: the end would be lost", func(ctx context.Context) {
		source := n.made(ctx, block, sized("16Mi"))
		n.grow(ctx, source, "32Mi")
		clone := n.volume(ctx, copyOf(source), sized("16Mi"))
		n.reconcile(ctx, clone)
		verdict, message := conditionOf(ctx, clone, stowagev1alpha1.ProvisionedCondition)
		Expect(verdict).To(Equal("False Invalid"))
		Expect(message).To(ContainSubstring("its image has 32Mi"))
	})
})

// copyOf requests a copy of a volume.
func copyOf(source *stowagev1alpha1.NodeVolume) func(*stowagev1alpha1.NodeVolume) {
	return func(volume *stowagev1alpha1.NodeVolume) {
		claim := volume.Spec.ClaimRef
		volume.Spec = *source.Spec.DeepCopy()
		volume.Spec.ClaimRef, volume.Spec.Source = claim, source.Name
	}
}

// mountUntil mounts a volume's image for as long as something is done to it.
func mountUntil(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (path string, unmount func()) {
	GinkgoHelper()
	path, _ = mountNoUUID(ctx, volume)
	return path, func() { Expect(mount.UnmountBelow(kernel, path)).To(Succeed()) }
}

// mountNoUUID mounts an image with xfs, as nodes do, and returns its device.
func mountNoUUID(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (path, loop string) {
	GinkgoHelper()
	attached := attach(ctx, volume, loopdev.ForFileSystem)
	defer attached.Close()
	path = GinkgoT().TempDir()
	Expect(unix.Mount(attached.Path(), path, "xfs", 0, "nouuid")).To(Succeed())
	DeferCleanup(func() { Expect(mount.UnmountBelow(kernel, path)).To(Succeed()) })
	return path, attached.Path()
}

func greet(path string, unmount func()) {
	GinkgoHelper()
	defer unmount()
	Expect(os.WriteFile(filepath.Join(path, "hello"), []byte("world"), 0o600)).To(Succeed())
}

// freeOn is how much of a disk is free.
func freeOn(path string) int64 {
	GinkgoHelper()
	at, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer at.Close()
	var space unix.Statfs_t
	Expect(unix.Syncfs(int(at.Fd()))).To(Succeed())
	Expect(unix.Fstatfs(int(at.Fd()), &space)).To(Succeed())
	return int64(space.Bavail) * space.Bsize
}

func satisfy(condition bool, then, otherwise OmegaMatcher) OmegaMatcher {
	if condition {
		return then
	}
	return otherwise
}
