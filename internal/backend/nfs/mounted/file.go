package mounted

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// file is a regular file, open.
type file struct{ *os.File }

var _ tree.RegularFile = file{}

// OpenFile is openat2.
func (d dir) OpenFile(ctx context.Context, name string) (tree.RegularFile, error) {
	return d.regular(ctx, "opening", name, unix.O_RDONLY)
}

// MakeFile is openat2, too.
func (d dir) MakeFile(ctx context.Context, name string) (tree.RegularFile, error) {
	return d.regular(ctx, "making file", name, unix.O_WRONLY|unix.O_CREAT)
}

// regular opens a regular file. A FIFO in its place would block, and a device is none of ours.
func (d dir) regular(ctx context.Context, doing, name string, flags uint64) (tree.RegularFile, error) {
	mode := uint64(0)
	if flags&unix.O_CREAT != 0 {
		mode = ownerOnly
	}
	opened, err := d.open(ctx, name, flags|unix.O_NONBLOCK, mode)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EISDIR) {
		err = unix.EINVAL
	}
	if err != nil {
		return nil, d.wrap(doing, name, err)
	}
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = unix.EINVAL
	}
	if err != nil {
		opened.Close()
		return nil, d.wrap(doing, name, err)
	}
	return file{opened}, nil
}

// SetInfo is fchownat, fchmod and utimensat, in this order: a change of owner takes bits.
func (d dir) SetInfo(ctx context.Context, name string, info tree.Info) error {
	err := d.named(ctx, name, func() error {
		return unix.Fchownat(d.fd(), name, int(info.UID), int(info.GID), unix.AT_SYMLINK_NOFOLLOW)
	})
	if err == nil && info.Type != tree.Symlink {
		err = d.setMode(ctx, name, info)
	}
	return d.wrap("setting owner and mode of", name, err)
}

func (d dir) setMode(ctx context.Context, name string, info tree.Info) error {
	opened, err := d.open(ctx, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := unix.Fchmod(int(opened.Fd()), info.Mode); err != nil {
		return err
	}
	modified, err := unix.TimeToTimespec(info.Modified)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(d.fd(), name, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, modified}, unix.AT_SYMLINK_NOFOLLOW)
}

// ReadAt is pread.
func (f file) ReadAt(ctx context.Context, into []byte, offset int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	read, err := f.File.ReadAt(into, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return read, err
}

// WriteAt is pwrite.
func (f file) WriteAt(ctx context.Context, data []byte, offset int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := f.File.WriteAt(data, offset)
	return err
}

// Truncate is ftruncate.
func (f file) Truncate(ctx context.Context, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync is fsync.
func (f file) Sync(context.Context) error { return f.File.Sync() }
