package gcepd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
)

// defaultSystem is made where the volume names none, as Kubernetes has it.
const defaultSystem = "ext4"

// ensureSystem finds the file system of a disk, and makes it where the disk is empty.
//
// A crash while one is made leaves half of it, which looks like data. So that it can be
// told from data, a note is written once the disk is proved empty, and removed before
// it is ever mounted. The note holds only for the very attachment that it was written
// in, by the kernel's sequence number of the disk and start of the machine: since then
// the disk was nowhere else. Whatever the note doesn't speak of is never formatted.
func (s *Driver) ensureSystem(ctx context.Context, disk *clouddisk.Disk, volume *corev1.PersistentVolume, place diskFolder) (string, error) {
	made, err := s.finishHalf(ctx, disk, place)
	if err != nil || made {
		return fsTypeOf(volume), err
	}
	found, err := s.Systems.Probe(ctx, disk.Path())
	if err != nil || found != "" {
		return found, err
	}
	return fsTypeOf(volume), s.format(ctx, disk, fsTypeOf(volume), place)
}

func fsTypeOf(volume *corev1.PersistentVolume) string {
	return cmp.Or(volume.Spec.CSI.FSType, defaultSystem)
}

// format makes the file system of a disk that is empty.
func (s *Driver) format(ctx context.Context, disk *clouddisk.Disk, fsType string, place diskFolder) error {
	size, err := disk.Size()
	if err != nil {
		return err
	}
	// First what can't be cured, so that no note is left of it.
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
	record, err := place.record()
	if err != nil {
		return err
	}
	if disk.IsProven() {
		if err := place.write(place.halfFile(), record.formattedAs(fsType)); err != nil {
			return err
		}
	}
	if err := s.Systems.Format(ctx, disk.Path(), fsType, size); err != nil {
		return err
	}
	return place.endHalf()
}

// finishHalf makes a file system anew that a crash left half made, and says whether
// there was one. A note of any other attachment is void.
func (s *Driver) finishHalf(ctx context.Context, disk *clouddisk.Disk, place diskFolder) (made bool, err error) {
	half, err := place.half()
	if half == nil || err != nil {
		return false, err
	}
	record, err := place.record()
	if err != nil {
		return false, err
	}
	if record == nil || !disk.IsProven() || half.Disk != disk.DiskIdentity || !half.isSame(record.formattedAs(half.FSType)) {
		return false, place.endHalf()
	}
	// The program that makes it may have outlived the agent that started it.
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
	return true, place.endHalf()
}

// formattedAs is the note that a file system is being made on the disk of a record.
func (r diskRecord) formattedAs(fsType string) diskRecord {
	r.FSType = fsType
	return r
}

// endHalf notes that a file system is made, or that nothing is known of one.
func (p diskFolder) endHalf() error {
	if err := os.Remove(p.halfFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("noting that the file system is made: %w", err)
	}
	return nil
}
