package volumeagent_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilexec "k8s.io/utils/exec"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
)

const mebibyte = 1 << 20

var fileSystems = filesystem.NewFileSystems(utilexec.New())

// image asks for an image with a file system.
func image(fsType string) func(*stowagev1alpha1.NodeVolume) {
	return func(volume *stowagev1alpha1.NodeVolume) {
		volume.Spec.Layout, volume.Spec.FSType = stowagev1alpha1.LayoutImage, fsType
	}
}

func block(volume *stowagev1alpha1.NodeVolume) {
	volume.Spec.Layout, volume.Spec.VolumeMode = stowagev1alpha1.LayoutImage, corev1.PersistentVolumeBlock
}

func sparse(volume *stowagev1alpha1.NodeVolume) {
	volume.Spec.Allocation = stowagev1alpha1.AllocationSparse
}

// grow asks for a larger capacity, and passes once.
func (n *node) grow(ctx context.Context, volume *stowagev1alpha1.NodeVolume, size string) {
	GinkgoHelper()
	asked := read(ctx, volume)
	asked.Spec.Capacity = resource.MustParse(size)
	Expect(admin.Update(ctx, asked)).To(Succeed())
	n.reconcile(ctx, volume)
}

func imagePath(volume *stowagev1alpha1.NodeVolume) string {
	return filepath.Join(dir(volume), stowagev1alpha1.ImageFile)
}

// entries are the names in the folder of a volume's backend, but for what is there
// to remove volumes.
func entries(volume *stowagev1alpha1.NodeVolume) []string {
	GinkgoHelper()
	found, err := os.ReadDir(string(volume.Spec.Path))
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, entry := range found {
		if entry.Name() != "lost+found" && entry.Name() != ".deleting" && entry.Name() != ".stowage-disk" {
			names = append(names, entry.Name())
		}
	}
	return names
}

// OpenImage opens a volume's image until the spec ends.
func openImage(volume *stowagev1alpha1.NodeVolume) *os.File {
	GinkgoHelper()
	file, err := os.OpenFile(imagePath(volume), os.O_RDWR, 0)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { file.Close() })
	return file
}

// attach attaches a volume's image until the spec ends.
func attach(ctx context.Context, volume *stowagev1alpha1.NodeVolume, use loopdev.Use) *loopdev.Loop {
	GinkgoHelper()
	needsMounts()
	file := openImage(volume)
	loop, err := loopdev.Attach(ctx, file, use)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		loop.Close()
		left, err := loopdev.Find(file)
		Expect(err).NotTo(HaveOccurred())
		if left != nil {
			Expect(left.Detach(ctx)).To(Succeed())
		}
	})
	return loop
}

// mountImage mounts a volume's image until the spec ends.
func mountImage(ctx context.Context, volume *stowagev1alpha1.NodeVolume) string {
	GinkgoHelper()
	loop := attach(ctx, volume, loopdev.ForFileSystem)
	return mountDevice(loop, volume.Spec.FSType, GinkgoT().TempDir())
}

func mountDevice(loop *loopdev.Loop, fsType, target string) string {
	GinkgoHelper()
	Expect(unix.Mount(loop.Path(), target, fsType, 0, "")).To(Succeed())
	Expect(loop.Close()).To(Succeed())
	DeferCleanup(func() { Expect(mount.UnmountBelow(kernel, target)).To(Succeed()) })
	return target
}

// formattedDisk mounts a disk with a file system of its own below the base.
func (n *node) formattedDisk(ctx context.Context, name, fsType string, bytes int64) string {
	GinkgoHelper()
	needsMounts()
	needsPrograms("mkfs." + fsType)
	file, err := os.Create(filepath.Join(GinkgoT().TempDir(), "disk"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { file.Close() })
	Expect(file.Truncate(bytes)).To(Succeed())
	output, err := exec.CommandContext(ctx, "mkfs."+fsType, "-q", file.Name()).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	loop, err := loopdev.Attach(ctx, file, loopdev.ForFileSystem)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(n.base, name)
	Expect(os.MkdirAll(path, 0o700)).To(Succeed())
	return mountDevice(loop, fsType, path)
}

// needsPrograms skips a spec whose programs are missing.
func needsPrograms(names ...string) {
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Skip("NOT RUN: " + name + " is missing: install e2fsprogs, xfsprogs and btrfs-progs")
		}
	}
}

// needsGrowth skips a spec whose file system this process can't grow.
func needsGrowth(fsType string) {
	needsMounts()
	needsPrograms("mkfs." + fsType)
	data := [2]unix.CapUserData{}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	Expect(unix.Capget(header, &data[0])).To(Succeed())
	if fsType == "ext4" && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) == 0 {
		Skip("NOT RUN: growing a mounted ext4 needs CAP_SYS_RESOURCE, which this machine's root hasn't got")
	}
}

// sizeOf is the size of a mounted file system.
func sizeOf(path string) int64 {
	GinkgoHelper()
	var space unix.Statfs_t
	Expect(unix.Statfs(path, &space)).To(Succeed())
	return int64(space.Blocks) * space.Frsize
}

func openImageSize(volume *stowagev1alpha1.NodeVolume) int64 {
	GinkgoHelper()
	info, err := openImage(volume).Stat()
	Expect(err).NotTo(HaveOccurred())
	return info.Size()
}

// fill writes a file of some size, and has it written to the disk.
func fill(path string, bytes int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return write(file, bytes)
}

// overwrite writes a device from its beginning, and has it written to the disk.
func overwrite(path string, bytes int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return write(file, bytes)
}

func write(file *os.File, bytes int64) error {
	part := make([]byte, mebibyte)
	for i := range part {
		part[i] = 'x'
	}
	for left := bytes; left > 0; left -= mebibyte {
		if _, err := file.Write(part[:min(left, mebibyte)]); err != nil {
			return err
		}
	}
	return file.Sync()
}

// nothingInstalled is a node without programs.
type nothingInstalled struct{ utilexec.Interface }

func (nothingInstalled) LookPath(string) (string, error) { return "", utilexec.ErrExecutableNotFound }
