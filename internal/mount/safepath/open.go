// Package safepath opens files and directories below a directory that is open, with openat2(2). No
// symlink, no mount and no "..", also none that appears during the call, leads out of it. It makes
// directories and files that have their mode from their first moment.
//
// All code of the node agent that touches what a pod can change opens it here. It never
// removes or mounts anything.
package safepath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/message"
)

// ErrMounted says that something is mounted where nothing may be.
var ErrMounted = errors.New("something is mounted there")

// ErrOutside says that a path doesn't lie below the directory that it must lie
// below, or passes through a symlink.
var ErrOutside = errors.New("the path leaves its base directory")

// UnfinishedPrefix begins the name of a directory that isn't yet what it is to be.
const UnfinishedPrefix = ".new-"

// Beneath makes the kernel refuse, while it resolves a path, whatever leads out
// of the directory that it started from.
const Beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// OpenDir opens a directory to list it, or to open what lies in it. Its path is the administrator's: it may have symlinks.
// os.Open does the same with five calls of the kernel more: it asks whether a directory can be polled.
func OpenDir(path string) (*os.File, error) { return openDir(path, unix.O_RDONLY) }

func openDir(path string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// OpenBeneath opens the directory at path, which must be base or lie below it,
// with no symlink between the two. The file can't be read: openat(2) starts
// from it. A missing directory is fs.ErrNotExist, one outside is ErrOutside.
func OpenBeneath(base, path string) (*os.File, error) { return openBeneath(base, path, unix.O_PATH) }

// ListBeneath lists the names in a directory, in order. It opens it as OpenBeneath does.
func ListBeneath(base, path string) ([]string, error) {
	dir, err := openBeneath(base, path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func openBeneath(base, path string, flags uint64) (*os.File, error) {
	relative, err := filepath.Rel(base, path)
	if err != nil || !filepath.IsLocal(relative) {
		return nil, fmt.Errorf("opening %s: not below %s: %w", path, base, ErrOutside)
	}
	// Base is the administrator's: it may be reached through symlinks.
	top, err := openDir(base, unix.O_PATH)
	if err != nil {
		return nil, fmt.Errorf("opening the base directory: %w", err)
	}
	defer top.Close()
	return Openat2(top, relative, flags|unix.O_DIRECTORY, Beneath)
}

// OpenAt opens the directory at path below an open one, with no symlink
// between the two.
func OpenAt(dir *os.File, path string) (*os.File, error) {
	return Openat2(dir, path, unix.O_PATH|unix.O_DIRECTORY, Beneath)
}

// maxAttempts is how often a path is resolved while the kernel can't be sure of it, because
// something is renamed, anywhere on the machine.
const maxAttempts = 10_000

// errRenames is the error of a path that couldn't be resolved for all the renames.
var errRenames = errors.New("something on this node renames directories all the time: it is tried again")

// Openat2 opens what lies at path below an open directory, as openat2(2) does with these
// flags. What the kernel refuses is ErrOutside or ErrMounted. It repeats what a rename
// elsewhere on the machine made unsure, a bounded number of times.
func Openat2(dir *os.File, path string, flags, resolve uint64) (*os.File, error) {
	name := NameOf(dir, path)
	for attempt := 1; ; attempt++ {
		fd, err := unix.Openat2(int(dir.Fd()), path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve})
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN) && attempt < maxAttempts:
			// EAGAIN: something was renamed during the call, so the kernel isn't sure.
			runtime.Gosched()
		case errors.Is(err, unix.EAGAIN):
			return nil, fmt.Errorf("opening %s: %w", name, errRenames)
		case errors.Is(err, unix.ELOOP) && resolve&unix.RESOLVE_NO_SYMLINKS != 0:
			return nil, fmt.Errorf("opening %s: a part of the path is a symlink: %w", name, ErrOutside)
		case errors.Is(err, unix.EXDEV) && resolve&unix.RESOLVE_NO_XDEV != 0:
			return nil, fmt.Errorf("opening %s: %w", name, ErrMounted)
		case errors.Is(err, unix.EXDEV):
			return nil, fmt.Errorf("opening %s: %w", name, ErrOutside)
		default:
			return nil, &os.PathError{Op: "opening", Path: name, Err: err}
		}
	}
}

// NameOf is the path of what is opened in a directory. Of one that is too long, it is the end.
// Directories can lie deeper than a path can say, and each open one has its own.
func NameOf(dir *os.File, path string) string {
	return message.End(filepath.Join(dir.Name(), path), message.MaxPath)
}

// EnsureDir makes the directory name in an open directory, with exactly this
// mode, unless it exists. It is there with its mode or not at all, whenever the
// process dies. Something that isn't a directory is an error. Several can make the same
// at once.
func EnsureDir(dir *os.File, name string, mode os.FileMode) error {
	existing, err := OpenAt(dir, name)
	if err == nil {
		return existing.Close()
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err = makeDir(dir, name, mode); err == nil {
		return nil
	}
	// Another may have been quicker: what is there was finished before it got its name.
	existing, missing := OpenAt(dir, name)
	if missing != nil {
		return err
	}
	return existing.Close()
}

func makeDir(dir *os.File, name string, mode os.FileMode) error {
	path, unfinished := filepath.Join(dir.Name(), name), UnfinishedPrefix+name
	at := int(dir.Fd())
	if err := unix.Mkdirat(at, unfinished, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "making directory", Path: path, Err: err}
	}
	if err := setMode(dir, unfinished, mode); err != nil {
		return err
	}
	if err := unix.Renameat2(at, unfinished, at, name, unix.RENAME_NOREPLACE); err != nil {
		return &os.PathError{Op: "making directory", Path: path, Err: err}
	}
	return nil
}

// setMode gives a directory its mode: the umask removed bits from that of mkdir. It opens the
// directory first, because fchmodat that follows no symlink needs Linux 6.6.
func setMode(parent *os.File, name string, mode os.FileMode) error {
	dir, err := Openat2(parent, name, unix.O_RDONLY|unix.O_DIRECTORY, Beneath)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Fchmod(int(dir.Fd()), uint32(mode.Perm())); err != nil {
		return &os.PathError{Op: "setting the mode of directory", Path: dir.Name(), Err: err}
	}
	return nil
}

// SyncDir makes sure that the names in a directory survive a loss of power.
func SyncDir(dir *os.File) error {
	readable, err := Reopen(dir)
	if err != nil {
		return err
	}
	defer readable.Close()
	return readable.Sync()
}
