package filesystem

import (
	"context"
	"fmt"
	"io"
	"os"

	mountutils "k8s.io/mount-utils"
)

// Probe returns what a device or an image holds: the type of a file system, another word for
// other known content, such as partitions, or "". What can't be read is an error, and never
// counts as empty.
func (f FileSystems) Probe(ctx context.Context, path string) (string, error) {
	run := f.programs(ctx)
	if err := run.check("blkid"); err != nil {
		return "", err
	}
	// A new image is: that is known without blkid.
	if blank, err := isBlank(path); blank || err != nil {
		return "", err
	}
	// blkid answers the same whether it finds nothing, or can't read.
	if err := checkReadable(path); err != nil {
		return "", err
	}
	found, err := (&mountutils.SafeFormatAndMount{Exec: run}).GetDiskFormat(path)
	if err == nil {
		// A program that was killed found nothing either.
		err = ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("looking for a file system on %s: %w", path, orCause(ctx, err))
	}
	return found, nil
}

// probedBytes is how much lies at either end where signatures are.
const probedBytes = 256 << 10

// checkReadable reads where signatures are.
func checkReadable(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("asking for the size of %s: %w", path, err)
	}
	for _, from := range []int64{0, max(0, size-probedBytes)} {
		section := io.NewSectionReader(file, from, probedBytes)
		if _, err := io.Copy(io.Discard, section); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return nil
}
