package gcepd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/mount"
)

// defaultSystem is the file system of a volume that names none, as in Kubernetes.
const defaultSystem = "ext4"

// ensureSystem finds the file system of a disk, and makes one if the disk is empty.
//
// A crash during mkfs leaves half a file system, which looks like data. To tell the two apart,
// format writes a record once the disk is proved empty, and removes it before the first mount.
// The record holds only for the attachment in which it was written: the disk's sequence number in
// the kernel, and the start of the machine. Since then the disk was nowhere else. The driver
// never formats what the record doesn't cover.
func (s *Driver) ensureSystem(ctx context.Context, disk *clouddisk.Disk, volume *corev1.PersistentVolume, folder diskFolder) (string, error) {
	began := time.Now()
	made, err := s.finishHalf(ctx, disk, folder)
	if err == nil && !made {
		var found string
		if found, err = s.Systems.Probe(ctx, disk.Path()); err != nil || found != "" {
			return found, err
		}
		err = s.format(ctx, disk, fsTypeOf(volume), folder)
	}
	if err == nil {
		effect.Log(ctx, effect.Formatted, began, volume)
	}
	return fsTypeOf(volume), err
}

func fsTypeOf(volume *corev1.PersistentVolume) string {
	return cmp.Or(volume.Spec.CSI.FSType, defaultSystem)
}

// format makes the file system of an empty disk.
func (s *Driver) format(ctx context.Context, disk *clouddisk.Disk, fsType string, folder diskFolder) error {
	size, err := disk.Size()
	if err != nil {
		return err
	}
	// First what a retry can't cure, so that no record is left of it.
	if err := s.Systems.CheckType(fsType, size); err != nil {
		return err
	}
	err = s.Systems.CheckEmpty(ctx, disk.Path())
	if errors.Is(err, device.ErrFormatted) {
		return fmt.Errorf("%w: a disk that holds anything is never formatted: take what you need of it, "+
			"and clear it yourself, or use another volume", err)
	}
	if err != nil {
		return err
	}
	record, err := folder.record()
	if err != nil {
		return err
	}
	if disk.IsProven() {
		if err := folder.write(folder.halfFile(), record.formattedAs(fsType)); err != nil {
			return err
		}
	}
	if err := s.Systems.Format(ctx, disk.Path(), fsType, size); err != nil {
		return err
	}
	return folder.endHalf()
}

// finishHalf makes a file system again that a crash left half made, and reports whether there was
// one. It discards a record of any other attachment.
func (s *Driver) finishHalf(ctx context.Context, disk *clouddisk.Disk, folder diskFolder) (made bool, err error) {
	half, err := folder.half()
	if half == nil || err != nil {
		return false, err
	}
	record, err := folder.record()
	if err != nil {
		return false, err
	}
	if record == nil || !disk.IsProven() || half.Disk != disk.DiskIdentity || !half.isSame(record.formattedAs(half.FSType)) {
		return false, folder.endHalf()
	}
	// mkfs may have outlived the agent that started it.
	taken, err := disk.IsTaken()
	if err != nil {
		return false, err
	}
	if taken {
		return false, fmt.Errorf("%s, whose file system isn't made yet, is in use: waiting until it isn't: %w", disk.Path(), mount.ErrMounted)
	}
	size, err := disk.Size()
	if err != nil {
		return false, err
	}
	if err := s.Systems.Remake(ctx, disk.Path(), half.FSType, size); err != nil {
		return false, err
	}
	return true, folder.endHalf()
}

// formattedAs returns the record of a file system that is being made on this disk.
func (r diskRecord) formattedAs(fsType string) diskRecord {
	r.FSType = fsType
	return r
}

// endHalf removes the record of a file system that is being made.
func (p diskFolder) endHalf() error {
	if err := os.Remove(p.halfFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("recording that the file system is made: %w", err)
	}
	return nil
}
