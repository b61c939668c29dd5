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
	// RecordName is the extended attribute of a volume's directory that tells whose it is.
	// The kernel shows those called trusted to CAP_SYS_ADMIN alone: pods can neither read
	// nor write it, and it goes wherever the directory goes.
	RecordName = "trusted.stowage.volume"
	// MaxRecord is how much of a record is read: the longest that is written is shorter.
	MaxRecord = 1024
)

// OwnerRecord is what a volume's directory tells of the NodeVolume that it was made for.
type OwnerRecord struct {
	// ID is the volume's: the record of a directory that was copied is another's.
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

// fits reports whether a record can be that of a directory. What is in it goes into an
// object of the API.
func (r OwnerRecord) fits(id string) bool {
	return r.ID == id && r.Claim.UID != "" && len(r.Claim.UID) <= 64 && len(r.Claim.Namespace) <= 63 && len(r.Claim.Name) <= 253 &&
		(r.Layout == stowagev1alpha1.LayoutDirectory || r.Layout == stowagev1alpha1.LayoutImage)
}

// KeepRecord makes sure that a volume's directory tells whose it is. Where the disk
// takes no such record, or has no room for it, the directory's name must do.
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

// ReadRecord reads the owner record of an open directory; nil where it has none of its
// own that can be read.
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
