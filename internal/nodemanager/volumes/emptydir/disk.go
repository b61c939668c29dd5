package emptydir

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// publishOnDisk makes the directory. An existing one is the pod's, which may have changed its mode.
func publishOnDisk(ctx context.Context, limits *limits, spec volumes.Spec, dir string) error {
	parent, err := safepath.OpenDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	name := filepath.Base(dir)
	existing, err := safepath.OpenAt(parent, name)
	if err == nil {
		return existing.Close()
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// It gets its name last: what a crash leaves before isn't the volume.
	begun, err := filetree.BeginDir(ctx, parent, name)
	if err != nil {
		return err
	}
	defer begun.Close()
	if err := own(begun, device.PathOf(begun), spec); err != nil {
		return err
	}
	if limit := limitOf(spec); limit > 0 {
		if err := limits.begin(parent, begun, dir, limit); err != nil {
			return err
		}
	}
	return filetree.FinishDir(parent, name)
}

// limitOf is a volume's sizeLimit in bytes; 0: none.
func limitOf(spec volumes.Spec) int64 {
	if limit := spec.Volume.EmptyDir.SizeLimit; limit != nil {
		return max(limit.Value(), 0)
	}
	return 0
}
