// Package filesystem looks for, makes, checks and grows file systems on devices and images. It uses
// the programs of this machine, and bounds their memory and output. The NodeVolume reconciler and
// the volume types of the node agent call it; package mount mounts.
//
// It never formats what holds data, or might.
package filesystem

import (
	"context"
	"errors"
	"fmt"

	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device"
)

// FileSystems looks for, makes, checks and grows file systems, with other programs.
// They are killed when the context of a call ends; no call returns before they are
// gone.
type FileSystems struct {
	exec   utilexec.Interface
	checks *checks
}

// NewFileSystems returns FileSystems that run programs by exec. A process has one: its
// copies count their checks together.
func NewFileSystems(exec utilexec.Interface) FileSystems {
	return FileSystems{exec: exec, checks: newChecks(memoryLimit)}
}

// CheckType reports why file systems of a type can't be made and maintained on this node, in
// this many bytes: ErrUnknownType, ErrNoTool or ErrTooSmall.
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

// Check looks for errors of a file system that isn't mounted, and repairs what needs no
// decision; the rest is ErrDamaged. A type that repairs itself when it is mounted is a
// success.
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
