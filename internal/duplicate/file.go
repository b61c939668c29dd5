// Package duplicate copies files and trees of files, so that the copy holds what the
// original does. The NodeVolume reconciler makes clones of volumes with it.
//
// It never follows a symlink, and never leaves the tree or the mount that it was given. It never
// changes the original, which must not be written during the copy. After an error there may be half
// a copy: the caller removes it.
package duplicate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// atOnce is how many bytes are copied between two checks of the context.
	atOnce = 16 << 20
	// buffered is how much is held in memory where the kernel doesn't copy itself.
	buffered = 1 << 20
)

// Kinds of errors.
var (
	// ErrCannotShare says that two files can't have the same blocks: the file system
	// knows no such thing, or not for these files.
	ErrCannotShare = errors.New("the file system can't share blocks between these files")
	// ErrTooDeep says that directories lie in each other deeper than is copied.
	ErrTooDeep = errors.New("directories lie too deep in each other")
)

// Share makes an empty file share all blocks of another one, at one moment: each stays shared
// until one of the files is written there. A concurrent write is in it wholly or not at all,
// in the order of the writes.
func Share(to, from *os.File) error {
	for {
		err := unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case isAny(err, unix.EOPNOTSUPP, unix.ENOTTY, unix.EXDEV, unix.EINVAL, unix.ENOSYS):
			return ErrCannotShare
		default:
			return fmt.Errorf("sharing the blocks of %s: %w", from.Name(), err)
		}
	}
}

// File copies the content of a file over another one, which is as long at least
// afterwards. Holes aren't written: the other file must be zero there.
func File(ctx context.Context, to, from *os.File) error {
	size, err := sizeOf(from)
	if err != nil {
		return err
	}
	has, err := sizeOf(to)
	if err == nil && has < size {
		err = to.Truncate(size)
	}
	for at := int64(0); at < size && err == nil; {
		var begin, end int64
		if begin, end, err = nextData(from, at, size); err == nil {
			err = copySection(ctx, to, from, begin, end)
			at = end
		}
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", from.Name(), err)
	}
	return nil
}

// nextData finds what isn't a hole.
func nextData(from *os.File, at, size int64) (begin, end int64, err error) {
	begin, err = unix.Seek(int(from.Fd()), at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size, nil
	}
	if err != nil {
		return 0, 0, err
	}
	end, err = unix.Seek(int(from.Fd()), begin, unix.SEEK_HOLE)
	return begin, min(end, size), err
}

// copySection copies the bytes between two offsets.
func copySection(ctx context.Context, to, from *os.File, begin, end int64) error {
	for begin < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		copied, err := copySome(to, from, begin, min(end-begin, atOnce))
		if err == nil && copied == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		begin += copied
	}
	return nil
}

// copySome copies a part, in the kernel where that can be.
func copySome(to, from *os.File, at, bytes int64) (int64, error) {
	for {
		read, written := at, at
		copied, err := unix.CopyFileRange(int(from.Fd()), &read, int(to.Fd()), &written, int(bytes), 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case isAny(err, unix.EOPNOTSUPP, unix.ENOSYS, unix.EXDEV, unix.EINVAL):
			return copyBuffered(to, from, at, min(bytes, buffered))
		default:
			return int64(copied), err
		}
	}
}

func copyBuffered(to, from *os.File, at, bytes int64) (int64, error) {
	part := make([]byte, bytes)
	read, err := from.ReadAt(part, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	written, err := to.WriteAt(part[:read], at)
	return int64(written), err
}

func sizeOf(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("asking for the size of %s: %w", file.Name(), err)
	}
	return info.Size(), nil
}

func isAny(err error, kinds ...error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
