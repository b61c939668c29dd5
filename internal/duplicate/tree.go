package duplicate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

const (
	// maxDepth is how deep directories may lie in each other. Two are held open for each, and a
	// tenant can nest deeper than a process may open files.
	maxDepth = 256
	// readBatch is how many names are read at once, and held in memory for each level.
	readBatch = 64
)

// Tree copies all that is in a directory into an empty one, which gets its owner,
// mode, times and extended attributes too. Hard links within the tree stay hard
// links, and holes stay holes; blocks are shared where that can be. Devices, sockets
// and pipes are made again as what they are: they hold no data. A mount in the tree is
// mount.ErrMounted. All of it survives a loss of power when Tree returns.
func Tree(ctx context.Context, to, from *os.File) error {
	into, err := device.Reopen(to, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer into.Close()
	tree := tree{ctx: ctx, links: links{top: into}}
	defer tree.links.close()
	if err := tree.copyTop(into, from); err != nil {
		return err
	}
	if err := unix.Syncfs(int(into.Fd())); err != nil {
		return fmt.Errorf("writing the copy of %s: %w", from.Name(), err)
	}
	return nil
}

// tree is one that is being copied.
type tree struct {
	ctx   context.Context
	links links
	// copies: the file system can't share blocks.
	copies bool
	depth  int
}

// copyTop copies the top directory. It removes the directory of links before it sets the times
// of the copy.
func (t *tree) copyTop(to, from *os.File) error {
	listed, err := device.Reopen(from, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer listed.Close()
	if err := t.content(to, listed); err != nil {
		return err
	}
	if err := t.links.end(t.ctx); err != nil {
		return err
	}
	return copyMetadata(to, listed)
}

// content copies what is in a directory.
func (t *tree) content(to, from *os.File) error {
	t.depth++
	defer func() { t.depth-- }()
	if t.depth > maxDepth {
		return fmt.Errorf("copying %s: %w: at most %d are copied", from.Name(), ErrTooDeep, maxDepth)
	}
	for {
		names, err := from.Readdirnames(readBatch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading directory %s: %w", from.Name(), err)
		}
		for _, name := range names {
			if err := t.entry(to, from, name); err != nil {
				return err
			}
		}
	}
}

// entry copies one name of a directory.
func (t *tree) entry(to, from *os.File, name string) error {
	if err := t.ctx.Err(); err != nil {
		return fmt.Errorf("copying %s: %w", from.Name(), err)
	}
	entry, err := safepath.OpenEntry(from, name)
	if err != nil {
		return fmt.Errorf("copying: %w", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(entry.Fd()), &stat); err != nil {
		entry.Close()
		return &os.PathError{Op: "looking at", Path: entry.Name(), Err: err}
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return t.subdirectory(to, entry, name)
	}
	defer entry.Close()
	if stat.Nlink == 1 {
		return t.copyOnce(to, entry, name, stat)
	}
	copied, err := t.links.link(to, name, stat)
	if copied || err != nil {
		return err
	}
	if err := t.copyOnce(to, entry, name, stat); err != nil {
		return err
	}
	return t.links.hold(to, name, stat)
}

// copyOnce copies anything but a directory, for its first name.
func (t *tree) copyOnce(to, from *os.File, name string, stat unix.Stat_t) error {
	if stat.Mode&unix.S_IFMT == unix.S_IFREG {
		return t.file(to, from, name)
	}
	return special(to, from, name, stat)
}

// subdirectory copies a directory, and then its metadata: each new name changes the times. It
// closes the entry before it copies the content, which saves one open file for each level.
func (t *tree) subdirectory(to, entry *os.File, name string) error {
	from, err := device.Reopen(entry, unix.O_RDONLY|unix.O_DIRECTORY)
	entry.Close()
	if err != nil {
		return err
	}
	defer from.Close()
	if err := unix.Mkdirat(int(to.Fd()), name, 0o700); err != nil {
		return wrap(err, "making directory", to, name)
	}
	made, err := create(to, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer made.Close()
	if err := t.content(made, from); err != nil {
		return err
	}
	return copyMetadata(made, from)
}

func (t *tree) file(to, from *os.File, name string) error {
	content, err := device.Reopen(from, unix.O_RDONLY)
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
	return copyMetadata(made, content)
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
	made, err := safepath.OpenEntry(to, name)
	if err != nil {
		return err
	}
	defer made.Close()
	return copyMetadata(made, from)
}

// create opens what was, or is, made in a directory of the copy.
func create(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, wrap(err, "making", dir, name)
	}
	return os.NewFile(uintptr(fd), safepath.NameOf(dir, name)), nil
}

func wrap(err error, doing string, dir *os.File, name string) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: doing, Path: safepath.NameOf(dir, name), Err: err}
}
