package apidata

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

const (
	// mode lets all users of a pod list its files; root alone writes.
	mode = 0o755
	// memoryFS is the type of a file system in memory in the mount table.
	memoryFS = "tmpfs"
)

// isMemoryAt reports whether a tmpfs is mounted at dir.
func isMemoryAt(table mount.Table, dir string) bool {
	point, mounted := table.At(dir)
	return mounted && point.FSType == memoryFS
}

func ensureMemory(mounter mount.Mounter, dir, label string) error {
	if mounted, err := mounter.IsMountPoint(dir); mounted || err != nil {
		return err
	}
	return mounter.Tmpfs(dir, mount.TmpfsOptions{Mode: mode, NoSwap: true, Label: label})
}

// open opens a volume to write to it. The open directory itself is checked to be in memory: its
// mount may have been unmounted by hand since the mount table was read.
func open(dir string, inMemory bool) (*os.Root, error) {
	opened, err := os.OpenRoot(dir)
	if err != nil || !inMemory {
		return opened, err
	}
	if err := checkMemory(opened); err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

func checkMemory(dir *os.Root) error {
	opened, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer opened.Close()
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(opened.Fd()), &system); err != nil {
		return fmt.Errorf("asking whether %s is in memory: %w", dir.Name(), err)
	}
	if system.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("writing to %s, which may be secret: it isn't a file system in memory: if something else is mounted there, unmount it by hand", dir.Name())
	}
	return nil
}
