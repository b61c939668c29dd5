// Package mounted works on a share that is mounted in this machine's file tree: the way to servers
// that speak only NFS version 4.
//
// Open returns a tree.Dir of the mount point. Every step is relative to an open directory, and the
// kernel follows no symlink and crosses no mount. The kernel may block a call for as long as the
// server is silent, in spite of the context. Callers run it where that does no harm.
package mounted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	ownerOnly = 0o600
	maxLink   = 4096
	// page is how many bytes of a listing are read at once.
	page = 32 << 10
	// confined is how names are opened: in the directory, on its file system.
	confined = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
)

// ErrNotMounted is part of the error where nothing is mounted: what would be
// written would land on the disk below.
var ErrNotMounted = errors.New("nothing is mounted there")

// dir is a directory, open.
type dir struct {
	*os.File
}

var _ tree.Dir = dir{}

// Open opens the mount point at path.
func Open(path string) (tree.Dir, error) {
	opened, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the mounted share: %w", err)
	}
	described := unix.Statx_t{}
	err = unix.Statx(int(opened.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_TYPE, &described)
	if err == nil && described.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		err = ErrNotMounted
	}
	if err != nil {
		opened.Close()
		return nil, fmt.Errorf("opening the mounted share %s: %w", path, err)
	}
	return dir{opened}, nil
}

// Stat is fstat.
func (d dir) Stat(context.Context) (tree.Info, error) {
	stat := unix.Stat_t{}
	err := unix.Fstat(d.fd(), &stat)
	return infoFrom(stat), d.wrap("reading the attributes of", "", err)
}

// Lookup is lstat.
func (d dir) Lookup(ctx context.Context, name string) (tree.Info, error) {
	stat := unix.Stat_t{}
	err := d.named(ctx, name, func() error { return unix.Fstatat(d.fd(), name, &stat, unix.AT_SYMLINK_NOFOLLOW) })
	return infoFrom(stat), d.wrap("looking up", name, err)
}

// Open is openat2.
func (d dir) Open(ctx context.Context, name string) (tree.Dir, error) {
	opened, err := d.open(ctx, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, unix.EXDEV):
		err = tree.ErrOtherFileSystem
	case errors.Is(err, unix.ELOOP):
		err = unix.ENOTDIR
	}
	if err != nil {
		return nil, d.wrap("opening", name, err)
	}
	return dir{opened}, nil
}

// ReadFile reads a regular file.
func (d dir) ReadFile(ctx context.Context, name string, limit int) ([]byte, error) {
	// Opening a FIFO in the file's place would block.
	opened, err := d.open(ctx, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, d.wrap("reading", name, err)
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = unix.EINVAL
	}
	if err != nil {
		return nil, d.wrap("reading", name, err)
	}
	data, err := io.ReadAll(io.LimitReader(opened, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = unix.EFBIG
	}
	return data, d.wrap("reading", name, err)
}

// ReadLink is readlinkat.
func (d dir) ReadLink(ctx context.Context, name string) (string, error) {
	text := make([]byte, maxLink)
	length := 0
	err := d.named(ctx, name, func() (err error) {
		length, err = unix.Readlinkat(d.fd(), name, text)
		return err
	})
	return string(text[:max(length, 0)]), d.wrap("reading link", name, err)
}

// Writable is faccessat.
func (d dir) Writable(context.Context) (bool, error) {
	err := unix.Faccessat(d.fd(), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	if tree.IsPermission(err) {
		return false, nil
	}
	return err == nil, d.wrap("asking for access to", "", err)
}

// Space is fstatfs.
func (d dir) Space(context.Context) (tree.Space, error) {
	stat := unix.Statfs_t{}
	err := unix.Fstatfs(d.fd(), &stat)
	size := uint64(max(stat.Bsize, 0))
	return tree.Space{Total: stat.Blocks * size, Free: stat.Bavail * size}, d.wrap("asking for the space of", "", err)
}

func (d dir) open(ctx context.Context, name string, flags, mode uint64) (*os.File, error) {
	fd := -1
	err := d.named(ctx, name, func() (err error) {
		how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode, Resolve: confined}
		fd, err = unix.Openat2(d.fd(), name, &how)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.Name(), name)), nil
}

// named calls the kernel with a name, again if a signal interrupted it.
func (d dir) named(ctx context.Context, name string, call func() error) error {
	if err := tree.CheckName(name); err != nil {
		return err
	}
	for {
		// The caller may have returned by now, with the answer that the call had no effect.
		if err := ctx.Err(); err != nil {
			return err
		}
		err := call()
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return err
		}
	}
}

func (d dir) fd() int { return int(d.Fd()) }

func (d dir) wrap(doing, name string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if err == nil {
		return nil
	}
	return &os.PathError{Op: doing, Path: tree.Printable(filepath.Join(d.Name(), name)), Err: err}
}

func infoFrom(stat unix.Stat_t) tree.Info {
	kind := map[uint32]tree.Type{
		syscall.S_IFDIR: tree.Directory, syscall.S_IFREG: tree.File, syscall.S_IFLNK: tree.Symlink,
	}[stat.Mode&syscall.S_IFMT]
	if kind == tree.Unknown {
		kind = tree.Other
	}
	return tree.Info{
		Type:       kind,
		Access:     tree.Access{UID: stat.Uid, GID: stat.Gid, Mode: stat.Mode &^ syscall.S_IFMT},
		Size:       uint64(max(stat.Size, 0)),
		FileSystem: stat.Dev,
		File:       stat.Ino,
		Modified:   time.Unix(stat.Mtim.Unix()),
	}
}
