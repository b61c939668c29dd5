package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
)

const (
	// RecordName is the extended attribute with the owner of a volume's directory. The kernel
	// shows trusted attributes only to CAP_SYS_ADMIN: pods can neither read nor write it. A copy
	// or a move of the directory keeps it.
	RecordName = "trusted.stowage.volume"
	// MaxRecord is the longest record that is read, in bytes. Those that are written are shorter.
	MaxRecord = 1024
)

// OwnerRecord is what a volume's directory records about its NodeVolume.
type OwnerRecord struct {
	// ID is the name of the volume: a directory that was copied has the record of another.
	ID     string                         `json:"id"`
	Claim  stowagev1alpha1.ClaimReference `json:"claim"`
	Layout stowagev1alpha1.LocalLayout    `json:"layout"`
}

// RecordOf is the record that a volume's directory should have.
func RecordOf(volume Volume) OwnerRecord {
	record := OwnerRecord{ID: volume.Name, Claim: volume.Owner, Layout: stowagev1alpha1.LayoutDirectory}
	if volume.Image != nil {
		record.Layout = stowagev1alpha1.LayoutImage
	}
	return record
}

// fits reports whether a record can be that of a directory. Its fields are copied to the API
// server, which limits their lengths.
func (r OwnerRecord) fits(id string) bool {
	return r.ID == id && r.Claim.UID != "" && len(r.Claim.UID) <= 64 && len(r.Claim.Namespace) <= 63 && len(r.Claim.Name) <= 253 &&
		(r.Layout == stowagev1alpha1.LayoutDirectory || r.Layout == stowagev1alpha1.LayoutImage)
}

// KeepRecord writes the owner record of a volume's directory, if it isn't there. Where the disk has
// no extended attributes, or no room, the directory's name must do.
func (b Base) KeepRecord(volume Volume) error {
	dir, err := b.Open(volume.Directory())
	if err != nil {
		return err
	}
	defer dir.Close()
	content, err := json.Marshal(RecordOf(volume))
	if err != nil {
		return fmt.Errorf("encoding the owner record of %s: %w", volume.Directory(), err)
	}
	if there, err := readAttribute(dir); err == nil && bytes.Equal(there, content) {
		return nil
	}
	err = unix.Setxattr(device.PathOf(dir), RecordName, content, 0)
	if err != nil && !slices.ContainsFunc([]error{
		unix.ENOTSUP, unix.EPERM, unix.EACCES, unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.E2BIG, unix.ERANGE,
	}, func(refusal error) bool { return errors.Is(err, refusal) }) {
		return fmt.Errorf("writing the owner record of %s: %w", volume.Directory(), err)
	}
	return nil
}

// ReadRecord reads the owner record of an open directory; nil where there is none, or none that
// fits.
func ReadRecord(dir *os.File, id string) *OwnerRecord {
	content, err := readAttribute(dir)
	if err != nil {
		return nil
	}
	return parseRecord(content, id)
}

func parseRecord(content []byte, id string) *OwnerRecord {
	record := &OwnerRecord{}
	if json.Unmarshal(content, record) != nil || !record.fits(id) {
		return nil
	}
	return record
}

func readAttribute(dir *os.File) ([]byte, error) {
	content := make([]byte, MaxRecord)
	size, err := unix.Getxattr(device.PathOf(dir), RecordName, content)
	if err != nil {
		return nil, fmt.Errorf("reading the owner record of %s: %w", dir.Name(), err)
	}
	return content[:size], nil
}
