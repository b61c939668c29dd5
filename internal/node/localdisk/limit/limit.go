// Package limit sets project quotas of bytes and inodes on the directories of volumes, where their
// disk has quotas. A directory gets its quota before it gets its name: no crash leaves a volume
// without a limit. A limit is never below what the volume holds.
package limit

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/quota"
)

// MakeDir makes the directory of a volume without an image. Where its disk has project quotas, the
// directory gets one before it gets its name.
func MakeDir(ctx context.Context, folder *os.File, volume layout.Volume) error {
	limited, err := mayLimit(folder)
	if err != nil {
		return err
	}
	if !limited {
		return safepath.EnsureDir(folder, volume.Name, layout.VolumeMode)
	}
	dir, err := filetree.BeginDir(ctx, folder, volume.Name)
	if err != nil {
		return err
	}
	defer dir.Close()
	inodes, err := quota.ShareOfInodes(folder, volume.Bytes)
	if err != nil {
		return err
	}
	if err := quota.Begin(dir, volume.Name, quota.Limits{Bytes: volume.Bytes, Inodes: inodes}); err != nil {
		return err
	}
	if err := os.Chmod(device.PathOf(dir), layout.VolumeMode); err != nil {
		return fmt.Errorf("letting pods into %s: %w", volume.Directory(), err)
	}
	if err := safepath.SyncDir(dir); err != nil {
		return err
	}
	return filetree.FinishDir(folder, volume.Name)
}

// SetOnDraft sets the limit of bytes on a directory that is filled before it gets its name. The
// source of a copy may have more files than its share of inodes: SetInodesOfCopy sets that limit.
func SetOnDraft(folder, dir *os.File, volume layout.Volume) error {
	limited, err := mayLimit(folder)
	if err != nil || !limited {
		return err
	}
	return quota.Begin(dir, volume.Name, quota.Limits{Bytes: volume.Bytes + copyMargin})
}

// copyMargin is what a directory may have beyond its limit while it is filled. A copy has hard links
// in a directory of their own, and xfs needs room to share blocks.
const copyMargin = 64 << 20

// copySlack is how much larger than its limit a directory may be once it is filled. Names that were
// written in another order take up more. Its limit stays the same.
const copySlack = 1 << 20

// SetOnCopy sets the final limit of bytes on a directory that was filled. It is EDQUOT if the
// directory takes up more, because its source had no limit.
func SetOnCopy(dir *os.File, volume layout.Volume) error {
	there, err := Find(dir, volume)
	if there == nil || err != nil {
		return err
	}
	if there.Usage.Bytes > volume.Bytes+copySlack {
		return fmt.Errorf("what is copied takes up %s, and the claim requests %s: create the claim again, and request more: %w",
			layout.Quantity(there.Usage.Bytes), layout.Quantity(volume.Bytes), unix.EDQUOT)
	}
	return there.Set(quota.Limits{Bytes: volume.Bytes, Inodes: there.Usage.Limit.Inodes})
}

// SetInodesOfCopy limits the inodes of a whole copy, to no less than it has.
func SetInodesOfCopy(folder, dir *os.File, volume layout.Volume) error {
	there, err := Find(dir, volume)
	if there == nil || err != nil {
		return err
	}
	share, err := quota.ShareOfInodes(folder, volume.Bytes)
	if err != nil {
		return err
	}
	return there.Set(quota.Limits{Bytes: volume.Bytes, Inodes: max(share, there.Usage.Inodes)})
}

// mayLimit reports whether volumes in a folder get quotas: their disk has quotas, and the folder
// isn't in a project itself. The kernel renames nothing from one project to another.
func mayLimit(folder *os.File) (bool, error) {
	enforced, err := quota.Enforced(folder)
	if err != nil || !enforced {
		return false, err
	}
	project, err := quota.ProjectOf(folder)
	return project == 0, err
}

// ProjectOf returns the project that was chosen for a volume's directory; 0 where it has none. A pod
// can set another on a directory that it owns: that isn't trusted.
func ProjectOf(dir *os.File, volume layout.Volume) (quota.Project, error) {
	enforced, err := quota.Enforced(dir)
	if err != nil || !enforced {
		return 0, err
	}
	project, err := quota.ProjectOf(dir)
	if err != nil || !project.MayBeOf(volume.Name) {
		return 0, err
	}
	return project, nil
}

// Set sets the limit of bytes of a volume's directory, and the limit of inodes in proportion. A
// directory without a project stays without a limit.
func Set(base layout.Base, volume layout.Volume, bytes int64) error {
	folder, err := base.Open(volume.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	dir, err := safepath.OpenAt(folder, volume.Name)
	if err != nil {
		return err
	}
	defer dir.Close()
	there, err := Find(dir, volume)
	if there == nil || err != nil {
		return err
	}
	// Of the folder: in a directory with a project, statfs shows the limit of the project.
	share, err := quota.ShareOfInodes(folder, bytes)
	if err != nil {
		return err
	}
	return there.Set(quota.Limits{Bytes: bytes, Inodes: mayHave(share, there.Usage)})
}

// Limited is a volume's directory that has a project, and its usage.
type Limited struct {
	dir     *os.File
	project quota.Project
	Usage   quota.Usage
}

// Find returns nil for a directory that has no project.
func Find(dir *os.File, volume layout.Volume) (*Limited, error) {
	project, err := ProjectOf(dir, volume)
	if err != nil || project == 0 {
		return nil, err
	}
	usage, err := quota.Of(dir, project)
	return &Limited{dir: dir, project: project, Usage: usage}, err
}

// Set sets limits if they differ.
func (l *Limited) Set(limits quota.Limits) error {
	sectors := (limits.Bytes + device.SectorBytes - 1) / device.SectorBytes
	if l.Usage.Limit.Bytes/device.SectorBytes == sectors && l.Usage.Limit.Inodes == limits.Inodes {
		return nil
	}
	return quota.SetLimits(l.dir, l.project, limits)
}

// mayHave returns the limit of inodes for a share. A volume that is older than limits of inodes keeps
// what it has, and a tenth more. No limit is lowered.
func mayHave(share int64, usage quota.Usage) int64 {
	const room = 10 // a tenth
	if share != 0 && usage.Limit.Inodes == 0 {
		return max(share, usage.Inodes+usage.Inodes/room)
	}
	return max(share, usage.Limit.Inodes)
}

// Remove removes the limits of a volume's directory before the directory is removed: later, nothing
// would connect them with the volume.
func Remove(folder *os.File, volume layout.Volume) error {
	dir, err := safepath.OpenAt(folder, volume.Name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	there, err := Find(dir, volume)
	if there == nil || err != nil {
		return err
	}
	return there.Set(quota.Limits{})
}
