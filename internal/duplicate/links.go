package duplicate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
)

// identity identifies a file, whatever its names are.
type identity struct{ device, inode uint64 }

// key is the name under which a file is held.
func (i identity) key() string { return fmt.Sprintf("%x-%x", i.device, i.inode) }

// links finds the copies of files that have several names. Each copy has one more name, after its
// original, in a directory at the top of the copy. So memory doesn't grow with the tree, and no path
// is needed. A file leaves the directory with its last name. A crash leaves the directory in a copy
// that isn't whole, and is removed with that.
type links struct {
	top *os.File
	// held is the directory, and name its name; nil until a file needs it.
	held *os.File
	name string
}

// link gives the copy of a file one more name, and reports whether there is a copy.
func (l *links) link(to *os.File, name string, of unix.Stat_t) (bool, error) {
	if l.held == nil {
		return false, nil
	}
	key := identity{of.Dev, of.Ino}.key()
	held := int(l.held.Fd())
	err := unix.Linkat(held, key, int(to.Fd()), name, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case errors.Is(err, unix.EMLINK):
		// The file has as many names as a file can have: the name here is the last one.
		err = unix.Renameat2(held, key, int(to.Fd()), name, unix.RENAME_NOREPLACE)
		return true, wrap(err, "linking", to, name)
	case err != nil:
		return true, wrap(err, "linking", to, name)
	}
	return true, l.release(key, of)
}

// release removes the name of a copy that has all the names that its file has.
func (l *links) release(key string, of unix.Stat_t) error {
	var now unix.Stat_t
	err := unix.Fstatat(int(l.held.Fd()), key, &now, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && now.Nlink > of.Nlink {
		err = unix.Unlinkat(int(l.held.Fd()), key, 0)
	}
	return wrap(err, "releasing", l.held, key)
}

// hold keeps the first name of a copy for further links.
func (l *links) hold(in *os.File, name string, of unix.Stat_t) error {
	if l.held == nil {
		if err := l.begin(); err != nil {
			return err
		}
	}
	key := identity{of.Dev, of.Ino}.key()
	return wrap(unix.Linkat(int(in.Fd()), name, int(l.held.Fd()), key, 0), "holding", in, name)
}

// begin makes the directory. Its name is random: a tenant can't guess it, so the tree can't
// have it.
func (l *links) begin() error {
	name := ".stowage-links-" + rand.Text()
	if err := unix.Mkdirat(int(l.top.Fd()), name, 0o700); err != nil {
		return wrap(err, "making directory", l.top, name)
	}
	held, err := create(l.top, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	l.held, l.name = held, name
	return nil
}

// end removes the directory, once every name is copied.
func (l *links) end(ctx context.Context) error {
	if l.held == nil {
		return nil
	}
	return filetree.RemoveTree(ctx, l.top, l.name)
}

func (l *links) close() {
	if l.held != nil {
		l.held.Close()
	}
}
