package csi

import (
	"context"
	"errors"
	"fmt"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// growSystem grows the file system on a device, if one is mounted.
func growSystem(ctx context.Context, mounter mount.Mounter, systems filesystem.FileSystems, path, at string) error {
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(at)
	if !mounted {
		return nil
	}
	err = systems.Grow(ctx, path, at, staged.FSType)
	if errors.Is(err, device.ErrUnknownType) {
		return fmt.Errorf("%w: %w", err, volumes.ErrNotSupported)
	}
	return err
}
