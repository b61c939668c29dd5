package safepath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// staysBeneath makes the kernel follow symlinks that stay below the directory that it
// started from, and refuse all others.
const staysBeneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

// OpenWithin opens what lies at path below an open directory: a directory, a file, or
// a socket or device, which isn't touched. Symlinks are followed as long as they don't
// lead out, or start at the root: those are ErrOutside. The file can't be read or
// written: it is to be mounted, or to open what lies below it.
func OpenWithin(dir *os.File, path string) (*os.File, error) {
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("opening %s below %s: %w", path, dir.Name(), ErrOutside)
	}
	return Openat2(dir, path, unix.O_PATH, staysBeneath)
}

// EnsureWithin opens what lies at path as OpenWithin does, and makes what is missing of it, all of it directories of
// exactly this mode. Each is made in the directory that was opened before it, and belongs to the group that its parent
// passes on. Where a pod removes or replaces one during the call, that is an error: try again.
func EnsureWithin(dir *os.File, path string, mode os.FileMode) (*os.File, error) {
	found, err := OpenWithin(dir, path)
	if !errors.Is(err, os.ErrNotExist) {
		return found, err
	}
	parts := strings.Split(filepath.Clean(path), "/")
	parent, err := OpenWithin(dir, ".")
	for i := 0; err == nil && i < len(parts); i++ {
		var next *os.File
		next, err = OpenWithin(dir, filepath.Join(parts[:i+1]...))
		if errors.Is(err, os.ErrNotExist) {
			next, err = makeAndOpen(parent, parts[i], mode)
		}
		parent.Close()
		parent = next
	}
	return parent, err
}

// makeAndOpen makes a directory in an open one. Something that appeared in its place before the open, also a symlink
// that leads nowhere, is an error.
func makeAndOpen(parent *os.File, name string, mode os.FileMode) (*os.File, error) {
	if err := mkdirExactly(parent, name, mode); err != nil {
		return nil, &os.PathError{Op: "making directory", Path: filepath.Join(parent.Name(), name), Err: err}
	}
	return OpenAt(parent, name)
}

// MakeDir makes a directory in an open one, which has exactly this mode from its first
// moment. One that exists is os.ErrExist.
func MakeDir(parent *os.File, name string, mode os.FileMode) error {
	if err := mkdirExactly(parent, name, mode); err != nil {
		return &os.PathError{Op: "making directory", Path: filepath.Join(parent.Name(), name), Err: err}
	}
	return nil
}

// mkdirExactly makes a directory that has its mode from its first moment. Setting it afterwards could
// be led to another directory, and a crash in between would leave it without. The umask is the
// process's, so it takes a thread that has one of its own.
func mkdirExactly(parent *os.File, name string, mode os.FileMode) error {
	made := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and so does its umask.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			made <- err
			return
		}
		unix.Umask(0)
		made <- unix.Mkdirat(int(parent.Fd()), name, uint32(mode.Perm()))
	}()
	return <-made
}
