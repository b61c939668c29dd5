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

// turnPatience is how long a pod waits for another one's turn at a directory.
const turnPatience = time.Minute

// acquire waits for the turn at a directory. Until the pod has it mounted, no other may
// take itself for the first.
func (p Plugin) acquire(ctx context.Context, path string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	if release, err = p.turns.Acquire(ctx, path); err != nil {
		return nil, errors.New("the volume is being given to another pod's fsGroup, and that isn't over")
	}
	return release, nil
}

// give gives a directory to the pod's group, unless other pods use it, or the pod only
// reads it.
func (p Plugin) give(ctx context.Context, spec volumes.Spec, source *os.File, dir string) error {
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

// isUsedBeside says whether another pod has the directory, or a part of it: it is mounted
// in a folder for volumes of this type that isn't this pod's.
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
