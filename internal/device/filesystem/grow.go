package filesystem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"

	"github.com/stowage-dev/stowage/internal/device"
)

// errNeedsPrivilege is added to the refusal of a kernel that grows a mounted ext4 for
// privileged processes only: see EXT4_IOC_RESIZE_FS in the kernel's fs/ext4/ioctl.c.
var errNeedsPrivilege = errors.New("the kernel grows a mounted ext4 only for a process that has CAP_SYS_RESOURCE: " +
	"give it to the node agent, or have the volume mounted again, which grows it before")

// Grow makes the file system on a device, which is mounted at a path, as large as the device.
// One that is as large already is a success.
func (f FileSystems) Grow(ctx context.Context, path, mountedAt, fsType string) error {
	run := f.programs(ctx)
	kind, known := kinds[fsType]
	if !known {
		return fmt.Errorf("growing %s: %q is %w", path, fsType, device.ErrUnknownType)
	}
	if err := run.check(kind.grow); err != nil {
		return err
	}
	grown, err := mountutils.NewResizeFs(run).Resize(path, mountedAt)
	switch {
	case err != nil && kind.asksForPrivilege && !isPrivileged():
		return fmt.Errorf("growing the file system on %s: %w (%w)", path, errNeedsPrivilege, orCause(ctx, err))
	case err != nil:
		return fmt.Errorf("growing the file system on %s: %w", path, orCause(ctx, err))
	case !grown:
		return fmt.Errorf("growing %s: there is no file system on it", path)
	}
	return nil
}

// GrowBeforeMount makes the file system on a device, which is mounted nowhere, as large as the
// device. It does so if the kernel would refuse that to this process once it is mounted. Otherwise
// Grow is safer: its journal outlives a process that is killed. A file system with errors is
// ErrDamaged.
func (f FileSystems) GrowBeforeMount(ctx context.Context, path, fsType string) error {
	kind := kinds[fsType]
	if !kind.asksForPrivilege || isPrivileged() {
		return nil
	}
	smaller, err := isSmaller(path)
	if err != nil || !smaller {
		return err
	}
	run := f.programs(ctx)
	if err := run.check(kind.grow); err != nil {
		return err
	}
	// resize2fs asks for a whole check of what was mounted before.
	if err := f.check(ctx, path, kind.fsck, "-f", "-p"); err != nil {
		return err
	}
	if output, err := f.checks.run(ctx, run, kind.grow, path); err != nil {
		return fmt.Errorf("growing the file system on %s before it is mounted: %w: %s", path, orCause(ctx, err), output)
	}
	return nil
}

// isPrivileged reports whether this process has CAP_SYS_RESOURCE.
func isPrivileged() bool {
	var has [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &has[0])
	return err == nil && has[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// Where the superblock of ext4 lies, and what lies where in it: see ext4(5) and the
// kernel's Documentation/filesystems/ext4/super.rst.
const (
	superblockStart, superblockBytes                = 1024, 1024
	blocksAt, blockSizeAt, featuresAt, blocksHighAt = 0x4, 0x18, 0x60, 0x150
	has64bit                                        = 0x80
	leastBlockSize, largestBlockShift               = 1024, 6
)

// isSmaller reports whether an ext4 leaves space for a block at the end of its device. A
// tenant may have written what it reads.
func isSmaller(path string) (bool, error) {
	device, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer device.Close()
	super := make([]byte, superblockBytes)
	if _, err := device.ReadAt(super, superblockStart); err != nil {
		return false, fmt.Errorf("reading the superblock on %s: %w", path, err)
	}
	end, err := device.Seek(0, 2)
	if err != nil {
		return false, fmt.Errorf("asking for the size of %s: %w", path, err)
	}
	blocks := uint64(binary.LittleEndian.Uint32(super[blocksAt:]))
	if binary.LittleEndian.Uint32(super[featuresAt:])&has64bit != 0 {
		blocks |= uint64(binary.LittleEndian.Uint32(super[blocksHighAt:])) << 32
	}
	shift := min(binary.LittleEndian.Uint32(super[blockSizeAt:]), largestBlockShift)
	return blocks < uint64(end)/(leastBlockSize<<shift), nil
}
