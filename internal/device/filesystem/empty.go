package filesystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stowage-dev/stowage/internal/device"
)

const (
	// emptyHead and emptyTail are how much at the ends of a disk must be zero for it to
	// count as empty.
	emptyHead = 4 << 20
	emptyTail = 1 << 20
)

// CheckEmpty returns ErrFormatted if there is anything on a disk: a known signature, or a
// single byte at its beginning or its end. Data without a signature is data, too.
func (f FileSystems) CheckEmpty(ctx context.Context, path string) error {
	found, err := f.Probe(ctx, path)
	if err != nil {
		return err
	}
	if found != "" {
		return fmt.Errorf("looking whether %s is empty: %w: %s", path, device.ErrFormatted, found)
	}
	return checkEnds(path)
}

// checkEnds returns ErrFormatted unless the ends of a disk are zero.
func checkEnds(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("asking for the size of %s: %w", path, err)
	}
	if size == 0 {
		return fmt.Errorf("%s has a size of 0 bytes: whether it holds data is unknown", path)
	}
	head := io.NewSectionReader(file, 0, emptyHead)
	tail := io.NewSectionReader(file, max(0, size-emptyTail), emptyTail)
	for _, section := range []io.Reader{head, tail} {
		if err := checkZero(section); err != nil {
			return fmt.Errorf("looking whether %s is empty: %w", path, err)
		}
	}
	return nil
}

func checkZero(section io.Reader) error {
	buffer, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := section.Read(buffer)
		if !bytes.Equal(buffer[:n], zeros[:n]) {
			return fmt.Errorf("%w, though no file system is known on it", device.ErrFormatted)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
