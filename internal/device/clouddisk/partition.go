package clouddisk

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Part opens a partition of the disk by its number. It is known by the sequence number of
// the disk that it is on.
func (d *Disk) Part(number int) (*Disk, error) {
	found, err := filepath.Glob(filepath.Join(entryOf(d.Number), "*", "partition"))
	if err != nil {
		return nil, fmt.Errorf("looking for partition %d of %s: %w", number, d.Path(), err)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(number) {
			continue // it is another one, or went after the listing
		}
		part, err := openDisk("/dev/" + filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		if entry, err := os.Readlink(entryOf(part.Number)); err != nil || filepath.Base(filepath.Dir(entry)) != d.name || part.Sequence != d.Sequence {
			part.Close()
			return nil, fmt.Errorf("%s is no partition of %s: %w", part.Path(), d.Path(), ErrOtherDisk)
		}
		return part, nil
	}
	return nil, fmt.Errorf("disk %s has no partition %d", d.Path(), number)
}
