// Package owned makes the temporary folders of tests, so that `make clean-machine`
// recognises what a killed test left behind.
//
// A test's folder is named stowage-… and has a file that its owner, the process that made
// it, keeps locked: the kernel unlocks it when the owner ends, however that happens. A
// process belongs to the folder if TMPDIR in its environment lies in it: children inherit
// that. While the owner lives, all that belongs to the folder is in use.
package owned

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// Prefix begins the name of each folder, as it does that of the cgroups of a test.
	Prefix = "stowage-"
	// ownerFile is what the owner has locked. It has the owner's PID in it.
	ownerFile = ".owner"
)

// ErrForeign says that a folder is not one of a test's.
var ErrForeign = errors.New("it is no test's folder")

// Folder makes a folder that this process owns as long as it lives.
func Folder(name string) (string, error) {
	folder, err := os.MkdirTemp("", Prefix+name+"-")
	if err != nil {
		return "", fmt.Errorf("making the folder of a test: %w", err)
	}
	// Other users run parts of some tests.
	if err := os.Chmod(folder, 0o755); err != nil {
		return "", fmt.Errorf("opening the folder of a test: %w", err)
	}
	// Never closed. The lock goes with this process, and children don't get it.
	file, err := unix.Open(filepath.Join(folder, ownerFile), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = unix.Flock(file, unix.LOCK_EX)
	}
	if err == nil {
		_, err = unix.Write(file, strconv.AppendInt(nil, int64(os.Getpid()), 10))
	}
	if err != nil {
		return "", fmt.Errorf("owning the folder of a test: %w", err)
	}
	return folder, nil
}

// Release removes such a folder that is otherwise empty. What is still in it stays, such as
// what is mounted there, and so does its owner: `make clean-machine` finds it by that.
func Release(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("reading the folder of a test: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() != ownerFile {
			return fmt.Errorf("removing the folder of a test: %s: %w", filepath.Join(folder, entry.Name()), unix.ENOTEMPTY)
		}
	}
	return errors.Join(os.Remove(filepath.Join(folder, ownerFile)), os.Remove(folder))
}

// Temporary makes such a folder the temporary one of this process, and of those that it
// starts from now on, unless it is in one already. Call remove when all of them ended.
func Temporary(name string) (remove func() error, err error) {
	for path := os.TempDir(); path != filepath.Dir(path); path = filepath.Dir(path) {
		if _, err := Owner(path); err == nil {
			return func() error { return nil }, nil
		}
	}
	folder, err := Folder(name)
	if err != nil {
		return nil, err
	}
	before := os.Getenv("TMPDIR")
	// An empty one is as good as none.
	return func() error { return errors.Join(os.Setenv("TMPDIR", before), os.RemoveAll(folder)) }, os.Setenv("TMPDIR", folder)
}

// Owner is the PID of a folder's owner; 0 if it has ended. A folder without one, a link,
// and what is another user's are ErrForeign.
func Owner(folder string) (pid int, err error) {
	info, err := os.Lstat(folder)
	if err != nil {
		return 0, err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	file, err := os.OpenFile(filepath.Join(folder, ownerFile), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil || !info.IsDir() || !known || int(stat.Uid) != os.Getuid() || !strings.HasPrefix(info.Name(), Prefix) {
		return 0, fmt.Errorf("reading the owner of %s: %w", folder, ErrForeign)
	}
	defer file.Close()
	if _, err := fmt.Fscan(file, &pid); err != nil {
		return 0, fmt.Errorf("reading the owner of %s: %w", folder, errors.Join(ErrForeign, err))
	}
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return pid, nil
	case err != nil:
		return 0, fmt.Errorf("trying the lock of %s: %w", folder, err)
	default:
		return 0, nil
	}
}
