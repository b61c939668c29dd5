package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// contentsFolder has the contents of disks and of what was copied from them.
	contentsFolder = "images"
	gibibyte       = 1 << 30
)

// Contents are what disks hold, and what was copied from them: sparse files, named by
// ids, which aren't used twice as names are. All methods can be repeated.
type Contents struct{ Folder string }

// Path is the file with the contents of a disk or copy.
func (c Contents) Path(id uint64) string {
	return filepath.Join(c.Folder, contentsFolder, strconv.FormatUint(id, 10)+".img")
}

// Make makes an image as large as it has to be. One that is larger stays so.
func (c Contents) Make(id uint64, sizeGb int64) error {
	file, err := os.OpenFile(c.Path(id), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	return grow(file, sizeGb)
}

func grow(file *os.File, sizeGb int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() >= sizeGb*gibibyte {
		return nil
	}
	if err := file.Truncate(sizeGb * gibibyte); err != nil {
		return fmt.Errorf("making %s %d GiB large: %w", file.Name(), sizeGb, err)
	}
	return nil
}

// Copy makes an image with the contents of another, at a size.
func (c Contents) Copy(from, to uint64, sizeGb int64) error {
	source, err := os.Open(c.Path(from))
	if err != nil {
		return err
	}
	defer source.Close()
	// After a crash in the middle, a repeat starts over.
	target, err := os.OpenFile(c.Path(to), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := copyData(source, target); err != nil {
		return fmt.Errorf("copying %s: %w", source.Name(), err)
	}
	return grow(target, sizeGb)
}

// copyData copies what was written to a sparse file, and leaves its holes.
func copyData(source, target *os.File) error {
	for end := int64(0); ; {
		start, err := source.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // only a hole is left
		}
		if err != nil {
			return err
		}
		if end, err = source.Seek(start, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(target, start), io.NewSectionReader(source, start, end-start)); err != nil {
			return err
		}
	}
}

// Remove removes an image. One that isn't there is a success.
func (c Contents) Remove(id uint64) error {
	err := os.Remove(c.Path(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Stored is how many bytes an image takes on this machine's disk; 0 where it is unknown.
func (c Contents) Stored(id uint64) int64 {
	var stat unix.Stat_t
	if err := unix.Stat(c.Path(id), &stat); err != nil {
		return 0
	}
	return stat.Blocks * 512
}
