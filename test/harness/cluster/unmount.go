package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount"
)

// unmountVolumes takes away what an agent that is stopped left mounted. Loop devices
// that pods saw stay when their mounts go.
func (f Folder) unmountVolumes(ctx context.Context) error {
	for _, node := range []string{NodeName, SecondNode} {
		if err := mount.UnmountBelow(mount.Kernel{}, f.agentRootOf(node)); err != nil {
			return err
		}
	}
	return detachAll(ctx, filepath.Join(f.Disks(), "*", "*", stowagev1alpha1.ImageFile))
}

// detachDisks takes away the devices of the cloud's disks, which it makes appear again
// when it is started.
func (f Folder) detachDisks(ctx context.Context) error {
	return detachAll(ctx, filepath.Join(f.cloud(), "images", "*"))
}

func detachAll(ctx context.Context, pattern string) error {
	images, err := filepath.Glob(pattern)
	for _, path := range images {
		err = errors.Join(err, detach(ctx, path))
	}
	if err != nil {
		return fmt.Errorf("detaching the images of volumes: %w", err)
	}
	return nil
}

func detach(ctx context.Context, path string) error {
	image, err := os.Open(path)
	if err != nil {
		return err
	}
	defer image.Close()
	loop, err := device.Find(image)
	if loop == nil || err != nil {
		return err
	}
	return loop.Detach(ctx)
}
