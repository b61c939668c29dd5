package localvolume

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/quota"
)

// makeDir makes the directory of a volume that is no image. Where its disk keeps
// project quotas it gets one before it gets its name, so that no crash leaves a
// volume without.
func makeDir(ctx context.Context, folder *os.File, volume Volume) error {
	limited, err := mayLimit(folder)
	if err != nil {
		return err
	}
	if !limited {
		return mount.EnsureDir(folder, volume.Name, volumeMode)
	}
	dir, err := mount.BeginDir(ctx, folder, volume.Name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := quota.Begin(dir, volume.Name, volume.Bytes); err != nil {
		return err
	}
	if err := os.Chmod(device.PathOf(dir), volumeMode); err != nil {
		return fmt.Errorf("letting pods into %s: %w", volume.directory(), err)
	}
	if err := mount.SyncDir(dir); err != nil {
		return err
	}
	return mount.FinishDir(folder, volume.Name)
}

// limitDraft is what makeDir does, for a directory that is filled before it is named.
func limitDraft(begun *draft, volume Volume) error {
	limited, err := mayLimit(begun.folder)
	if err != nil || !limited {
		return err
	}
	return quota.Begin(begun.dir, volume.Name, volume.Bytes+copyMargin)
}

// copyMargin is what a directory may have beyond its limit while it is filled: the copy holds
// files by further names, and xfs needs more room for the sharing of blocks than they take.
const copyMargin = 64 << 20

// copySlack is how much larger than its limit a directory may be once it is filled: names take
// up more where they were written in another order. It keeps its limit all the same.
const copySlack = 1 << 20

// limitCopy gives a directory that was filled the limit that it is to have. One that takes up
// more, because its source had no limit, is EDQUOT.
func limitCopy(dir *os.File, volume Volume) error {
	project, err := projectOf(dir, volume)
	if err != nil || project == 0 {
		return err
	}
	usage, err := quota.Of(dir, project)
	if err != nil {
		return err
	}
	if usage.Bytes > volume.Bytes+copySlack {
		return fmt.Errorf("what is copied takes up %s, and the claim requests %s: create the claim anew, and request more: %w",
			quantity(usage.Bytes), quantity(volume.Bytes), unix.EDQUOT)
	}
	return quota.SetLimit(dir, project, volume.Bytes)
}

// mayLimit says whether volumes in a folder get quotas: their disk keeps them, and the
// folder isn't itself in a project, out of which the kernel moves nothing.
func mayLimit(folder *os.File) (bool, error) {
	enforced, err := quota.Enforced(folder)
	if err != nil || !enforced {
		return false, err
	}
	project, err := quota.ProjectOf(folder)
	return project == 0, err
}

// projectOf is the project of a volume's directory that was chosen for it, 0 where it
// has none. Pods can note another in a directory that they own.
func projectOf(dir *os.File, volume Volume) (quota.Project, error) {
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

// limit makes a number of bytes the limit of a volume's directory, if that has one.
func (s *Store) limit(volume Volume, bytes int64) error {
	dir, err := mount.OpenBeneath(s.Base, volume.directory())
	if err != nil {
		return err
	}
	defer dir.Close()
	return setLimit(dir, volume, bytes)
}

// setLimit sets the limit of a directory that has one, where it is another.
func setLimit(dir *os.File, volume Volume, bytes int64) error {
	project, err := projectOf(dir, volume)
	if err != nil || project == 0 {
		return err
	}
	usage, err := quota.Of(dir, project)
	if err != nil {
		return err
	}
	if usage.Limit/device.SectorBytes == (bytes+device.SectorBytes-1)/device.SectorBytes {
		return nil
	}
	return quota.SetLimit(dir, project, bytes)
}

// dropLimit removes the limit of a volume's directory, which is to be removed: after
// that, nothing tells whose it was.
func dropLimit(folder *os.File, volume Volume) error {
	dir, err := mount.OpenAt(folder, volume.Name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return setLimit(dir, volume, 0)
}

// lookAtDirectory looks at a volume that is a directory. One without a quota has to be
// walked to know what it takes up.
func (s *sight) lookAtDirectory(dir *os.File, volume Volume) error {
	if err := checkReads(dir); err != nil {
		return err
	}
	project, err := projectOf(dir, volume)
	if err != nil || project == 0 {
		return err
	}
	usage, err := quota.Of(dir, project)
	if err != nil {
		return err
	}
	s.enforced = true
	s.usage = &Usage{Bytes: usage.Bytes, Size: usage.Limit, Inodes: &usage.Inodes}
	return nil
}
