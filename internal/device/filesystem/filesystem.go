// Package filesystem looks for, makes, checks and grows file systems on devices and images,
// by the programs of this machine, whose memory and output are bounded. The NodeVolume
// reconciler and the volume types of the node agent call it; package mount mounts.
//
// It never formats what holds data, or might.
package filesystem

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device"
)

// What fsck answers by its exit status: see fsck(8).
const (
	fsckMended  = 1
	fsckDamaged = 4
	fsckUnable  = 8
	// From here on, it isn't fsck that answers: it couldn't be started.
	fsckStatuses = 64
)

// kind is what to know of a type of file system.
type kind struct {
	// minimum is how many bytes it needs.
	minimum int64
	// format are the arguments that make one on a device, and formatImage in an
	// image, before the path. None reserves room for root. Nothing is discarded: that
	// would leave an image full of holes. The unit is 4 KiB, which every disk can
	// write directly.
	format, formatImage []string
	// grow is what makes it larger, and fsck what mends it; "": mounting does.
	grow, fsck string
	// asksForPrivilege is true where a kernel grows it, while it is mounted, only for a
	// process that has CAP_SYS_RESOURCE.
	asksForPrivilege bool
}

const mebibyte = 1 << 20

// kinds are the types of file systems that Stowage makes.
var kinds = map[string]kind{
	"ext4": {
		// With less it has no journal.
		minimum: 8 * mebibyte,
		format:  []string{"-q", "-F", "-m0", "-b4096", "-I256", "-E", "nodiscard"},
		// Here the tables of inodes are made at once, which costs nothing: the kernel,
		// which would do it after the first mount, leaves holes in the image.
		formatImage: []string{"-q", "-F", "-m0", "-b4096", "-I256", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"},
		grow:        "resize2fs", fsck: "fsck.ext4", asksForPrivilege: true,
	},
	"xfs": {
		minimum:     300 * mebibyte,
		format:      []string{"-q", "-K", "-s", "size=4096"},
		formatImage: []string{"-q", "-K", "-s", "size=4096"},
		grow:        "xfs_growfs",
	},
}

// FileSystems looks for, makes, checks and grows file systems, with other programs.
// They are killed when the context of a call ends; no call returns before they are
// gone.
type FileSystems struct {
	exec   utilexec.Interface
	checks *checks
}

// NewFileSystems returns FileSystems that run programs by exec. A process has one, whose
// copies count their checks together.
func NewFileSystems(exec utilexec.Interface) FileSystems {
	return FileSystems{exec: exec, checks: newChecks(memoryLimit)}
}

// CheckType says whether file systems of a type can be made and looked after on this
// node, in this many bytes: else it is ErrUnknownType, ErrNoTool or ErrTooSmall.
func (f FileSystems) CheckType(fsType string, bytes int64) error {
	kind, known := kinds[fsType]
	if !known {
		return fmt.Errorf("%q is %w: use ext4 or xfs", fsType, device.ErrUnknownType)
	}
	if bytes < kind.minimum {
		return fmt.Errorf("%w: %s needs at least %dMi", device.ErrTooSmall, fsType, kind.minimum/mebibyte)
	}
	needed := []string{"mkfs." + fsType, kind.grow, "blkid"}
	if kind.fsck != "" {
		needed = append(needed, kind.fsck)
	}
	return programs{Interface: f.exec}.check(needed...)
}

// Format makes a file system on a device, or in an image, of this many bytes. What
// holds anything that is known is ErrFormatted, and left as it is. After an error
// there may be half a file system.
func (f FileSystems) Format(ctx context.Context, path, fsType string, bytes int64) error {
	if err := f.CheckType(fsType, bytes); err != nil {
		return err
	}
	found, err := f.Probe(ctx, path)
	if err != nil {
		return err
	}
	if found != "" {
		return fmt.Errorf("formatting %s: %w: %s", path, device.ErrFormatted, found)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	arguments := kinds[fsType].format
	if info.Mode().IsRegular() {
		arguments = kinds[fsType].formatImage
	}
	return f.make(ctx, path, fsType, arguments)
}

// make makes a file system, whatever was there.
func (f FileSystems) make(ctx context.Context, path, fsType string, arguments []string) error {
	arguments = append(slices.Clone(arguments), path)
	output, err := f.programs(ctx).Command("mkfs."+fsType, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("formatting %s as %s: %w: %s", path, fsType, orCause(ctx, err), output)
	}
	return nil
}

// Check looks for errors of a file system that isn't mounted, and mends what can be
// mended without a person; the rest is ErrDamaged. A type that mends itself when it
// is mounted is a success.
func (f FileSystems) Check(ctx context.Context, path, fsType string) error {
	fsck := kinds[fsType].fsck
	if fsck == "" {
		return nil
	}
	return f.check(ctx, path, fsck, "-p")
}

func (f FileSystems) check(ctx context.Context, path, fsck string, flags ...string) error {
	run := f.programs(ctx)
	if err := run.check(fsck); err != nil {
		return err
	}
	output, err := f.checks.run(ctx, run, fsck, append(flags, path)...)
	// One that was killed has no exit status, which reads as if all went wrong.
	var exit utilexec.ExitError
	exited := errors.As(err, &exit) && exit.Exited()
	switch {
	case err == nil || exited && exit.ExitStatus() == fsckMended:
		return nil
	case exited && exit.ExitStatus() < fsckStatuses && exit.ExitStatus()&fsckDamaged != 0:
		return fmt.Errorf("checking %s: %w: run %s on it by hand: %s", path, device.ErrDamaged, fsck, output)
	default:
		return fmt.Errorf("checking %s with %s: %w: %s", path, fsck, orCause(ctx, err), output)
	}
}

func (f FileSystems) programs(ctx context.Context) programs {
	return programs{Interface: f.exec, ctx: ctx}
}

// orCause adds that a program was killed because its context ended.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
