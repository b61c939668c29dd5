package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// fsGroupTimeout is how long a pod waits while the fsGroup of another pod is applied.
const fsGroupTimeout = time.Minute

// acquire waits for the lock of a directory. It is held until the directory is mounted, so that no
// other pod counts as the first.
func (p Plugin) acquire(ctx context.Context, path string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, fsGroupTimeout)
	defer cancel()
	if release, err = p.directories.Acquire(ctx, path); err != nil {
		return nil, errors.New("another pod's fsGroup is still being applied to the volume")
	}
	return release, nil
}

// applyFSGroup applies the pod's fsGroup to a directory, unless other pods use it, or the pod mounts
// it read-only.
func (p Plugin) applyFSGroup(ctx context.Context, spec volumes.Spec, source *os.File, dir string) error {
	if spec.Access == mount.ReadOnly {
		return nil
	}
	used, err := isUsedBeside(source, dir)
	if err != nil {
		return err
	}
	if used {
		return p.owner.ReportOtherGroup(ctx, spec.Pod, spec.Name(), source)
	}
	return p.owner.ApplyFSGroup(ctx, spec.Pod, spec.Name(), source)
}

// isUsedBeside reports whether another pod has the directory, or a part of it. That is whether it is
// mounted in another pod's folder for volumes of this type.
func isUsedBeside(source *os.File, dir string) (bool, error) {
	points, err := mount.Visible(source)
	if err != nil {
		return false, err
	}
	for _, point := range points {
		folder := filepath.Dir(point.Path)
		if filepath.Base(folder) == filepath.Base(filepath.Dir(dir)) && point.Path != dir {
			return true, nil
		}
	}
	return false, nil
}
