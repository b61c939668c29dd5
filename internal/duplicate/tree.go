package duplicate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

const (
	// maxDepth is how deep directories may lie in each other: two are held open for
	// each, and whoever fills a volume can nest deeper than a process may open files.
	maxDepth = 256
	// readBatch is how many names are read at once.
	readBatch = 1024
)

// Tree copies all that is in a directory into an empty one, which gets its owner,
// mode, times and extended attributes too. Hard links within the tree stay hard
// links, and holes stay holes; blocks are shared where that can be. Devices, sockets
// and pipes are made anew as what they are: they hold no data. A mount in the tree is
// mount.ErrMounted. All of it survives a loss of power when Tree returns.
func Tree(ctx context.Context, to, from *os.File) error {
	into, err := reopen(to, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer into.Close()
	tree := tree{ctx: ctx, top: into, links: map[identity]string{}}
	if err := tree.directory(into, from, "."); err != nil {
		return err
	}
	if err := unix.Syncfs(int(into.Fd())); err != nil {
		return fmt.Errorf("writing the copy of %s: %w", from.Name(), err)
	}
	return nil
}

// tree is one that is being copied.
type tree struct {
	ctx context.Context
	// top is the top directory of the copy.
	top *os.File
	// links are the places, below top, of files that have several names.
	links map[identity]string
	// copies: the file system can't share blocks.
	copies bool
	depth  int
}

// identity is what a file is known by, whatever its names are.
type identity struct{ device, inode uint64 }

// directory copies what is in a directory, and then what describes it: the times
// change with each name.
func (t *tree) directory(to, from *os.File, path string) error {
	t.depth++
	defer func() { t.depth-- }()
	if t.depth > maxDepth {
		return fmt.Errorf("copying %s: %w: at most %d are copied", from.Name(), ErrTooDeep, maxDepth)
	}
	listed, err := reopen(from, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer listed.Close()
	for {
		names, err := listed.Readdirnames(readBatch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading directory %s: %w", from.Name(), err)
		}
		for _, name := range names {
			if err := t.entry(to, listed, filepath.Join(path, name)); err != nil {
				return err
			}
		}
	}
	return describe(to, listed)
}

// entry copies one name of a directory.
func (t *tree) entry(to, from *os.File, path string) error {
	if err := t.ctx.Err(); err != nil {
		return fmt.Errorf("copying %s: %w", from.Name(), err)
	}
	name := filepath.Base(path)
	entry, err := openEntry(from, name)
	if err != nil {
		return err
	}
	defer entry.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(entry.Fd()), &stat); err != nil {
		return &os.PathError{Op: "looking at", Path: entry.Name(), Err: err}
	}
	kind := stat.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && stat.Nlink > 1 {
		known := identity{stat.Dev, stat.Ino}
		if first, copied := t.links[known]; copied {
			return wrap(unix.Linkat(int(t.top.Fd()), first, int(to.Fd()), name, 0), "linking", to, name)
		}
		t.links[known] = path
	}
	switch kind {
	case unix.S_IFDIR:
		return t.subdirectory(to, entry, path)
	case unix.S_IFREG:
		return t.file(to, entry, name)
	default:
		return special(to, entry, name, stat)
	}
}

func (t *tree) subdirectory(to, from *os.File, path string) error {
	name := filepath.Base(path)
	if err := unix.Mkdirat(int(to.Fd()), name, 0o700); err != nil {
		return wrap(err, "making directory", to, name)
	}
	made, err := create(to, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer made.Close()
	return t.directory(made, from, path)
}

func (t *tree) file(to, from *os.File, name string) error {
	content, err := reopen(from, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer content.Close()
	made, err := create(to, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	defer made.Close()
	err = ErrCannotShare
	if !t.copies {
		err = Share(made, content)
	}
	if errors.Is(err, ErrCannotShare) {
		t.copies = true
		err = File(t.ctx, made, content)
	}
	if err != nil {
		return err
	}
	return describe(made, content)
}

// special makes what is neither a file nor a directory.
func special(to, from *os.File, name string, stat unix.Stat_t) error {
	var err error
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		target := make([]byte, unix.PathMax)
		var length int
		if length, err = unix.Readlinkat(int(from.Fd()), "", target); err == nil {
			err = unix.Symlinkat(string(target[:length]), int(to.Fd()), name)
		}
	} else {
		err = unix.Mknodat(int(to.Fd()), name, stat.Mode, int(stat.Rdev))
	}
	if err != nil {
		return wrap(err, "making", to, name)
	}
	made, err := openEntry(to, name)
	if err != nil {
		return err
	}
	defer made.Close()
	return describe(made, from)
}

// openEntry opens whatever has a name in a directory, to know it. Nothing happens to
// a device or a pipe.
func openEntry(dir *os.File, name string) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	for {
		fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
		})
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case isAny(err, unix.EAGAIN, unix.EINTR):
			continue
		case errors.Is(err, unix.EXDEV):
			return nil, fmt.Errorf("copying %s: %w", path, mount.ErrMounted)
		default:
			return nil, &os.PathError{Op: "opening", Path: path, Err: err}
		}
	}
}

// create opens what was, or is, made in a directory of the copy.
func create(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, wrap(err, "making", dir, name)
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name)), nil
}

// reopen opens the very file that is open here, to read it.
func reopen(file *os.File, flags int) (*os.File, error) {
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(file.Fd())), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "opening", Path: file.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

func wrap(err error, doing string, dir *os.File, name string) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: doing, Path: filepath.Join(dir.Name(), name), Err: err}
}
