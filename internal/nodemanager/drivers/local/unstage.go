package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Unstage removes all that Stage made. It succeeds when no loop device shows the image any more.
func (s *Driver) Unstage(ctx context.Context, handle, staging string) error {
	record, err := s.records.Find(handle)
	if err == nil {
		err = s.removeStaged(ctx, record, staging)
	}
	if err != nil {
		return fmt.Errorf("unstaging volume %s: %w", handle, err)
	}
	if record != nil && record.Staging != staging {
		return nil // it is staged elsewhere
	}
	return s.records.Remove(handle)
}

// removeStaged unmounts and detaches a staged volume that no pod has any more.
func (s *Driver) removeStaged(ctx context.Context, record *stagedLocal, staging string) error {
	mounter := s.images.mounter
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(staging)
	if mounted {
		if err := mounting.RefuseUsed(table, staged); err != nil {
			return err
		}
	}
	loop, err := s.loopOf(record, table, staging)
	if err != nil {
		return err
	}
	if loop != nil {
		defer loop.Close()
		if err := s.refuseDeviceUsed(loop, staging); err != nil {
			return err
		}
	}
	if mounted {
		if err := mount.UnmountBelow(mounter, staging); err != nil {
			return err
		}
	}
	if err := detach(ctx, loop); err != nil {
		return err
	}
	// The bound image leads to the device, and so goes after it.
	return volumes.UnbindFile(mounter, ImageFolder(staging).image())
}

func (s *Driver) refuseDeviceUsed(loop *loopdev.Loop, staging string) error {
	users, err := s.images.usersOf(staging, loop)
	if err == nil && len(users) > 0 {
		err = fmt.Errorf("%w: %s is mounted at %s", volumes.ErrInUse, loop.Path(), users[0].Path)
	}
	return err
}

// loopOf finds the loop device of what is staged at a path; nil if it has none. The mounted file
// system leads to it, or the bound image; after a crash, the record alone.
func (s *Driver) loopOf(record *stagedLocal, table mount.Table, staging string) (*loopdev.Loop, error) {
	ours := record != nil && record.Staging == staging
	if staged, mounted := table.At(staging); mounted {
		// The file system that a directory is in may be on a loop device, too: that isn't the volume's.
		if ours && !record.Image || staged.Root != "/" {
			return nil, nil
		}
		return loopdev.LoopAt(staged.Device)
	}
	if loop, err := find(ImageFolder(staging)); loop != nil || err != nil {
		return loop, err
	}
	if !ours || !record.Image {
		return nil, nil
	}
	image, err := s.local.openImage(record.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer image.Close()
	return loopdev.Find(image)
}
