package clouddisk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// DiskIdentity is what the kernel knows a disk by while it is attached.
type DiskIdentity struct {
	// Number is major:minor, as the mount table shows it.
	Number string `json:"number"`
	// Sequence is never given to a second disk until the machine boots again; ""
	// where the kernel gives none, which is before Linux 5.15.
	Sequence string `json:"sequence,omitempty"`
	// Boot identifies that boot of the machine.
	Boot string `json:"boot"`
}

func entryOf(number string) string { return "/sys/dev/block/" + number }

func identityOfDisk(number string) (DiskIdentity, error) {
	boot, err := BootID()
	if err != nil {
		return DiskIdentity{}, err
	}
	sequence, err := os.ReadFile(filepath.Join(entryOf(number), "diskseq"))
	if errors.Is(err, os.ErrNotExist) {
		sequence, err = sequenceOfWhole(number)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return DiskIdentity{}, fmt.Errorf("asking for the sequence number of disk %s: %w", number, err)
	}
	return DiskIdentity{Number: number, Sequence: strings.TrimSpace(string(sequence)), Boot: boot}, nil
}

// IsThere reports whether the disk of this identity is still attached. A disk that was
// detached and attached again has another one.
func (i DiskIdentity) IsThere() (bool, error) {
	if _, err := os.Lstat(entryOf(i.Number)); errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("asking whether disk %s is there: %w", i.Number, err)
	}
	now, err := identityOfDisk(i.Number)
	return now == i, err
}

// IsProven reports whether IsThere can distinguish the disk from another one that got its
// number.
func (i DiskIdentity) IsProven() bool { return i.Sequence != "" && i.Boot != "" }

// BootID identifies this boot of the machine.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading which boot of the machine this is: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// sequenceOfWhole is the sequence number of the disk that a partition is on; an error of
// os.ErrNotExist if the device is no partition.
func sequenceOfWhole(number string) ([]byte, error) {
	entry, err := filepath.EvalSymlinks(entryOf(number))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(entry, "partition")); err != nil {
		return nil, errors.Join(os.ErrNotExist, err)
	}
	return os.ReadFile(filepath.Join(filepath.Dir(entry), "diskseq"))
}
