package apidata

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// memoryFS is what the mount table calls a file system in memory.
const memoryFS = "tmpfs"

// isMemoryAt says whether the mount table shows a file system in memory.
func isMemoryAt(table mount.Table, dir string) bool {
	point, mounted := table.At(dir)
	return mounted && point.FSType == memoryFS
}

func (p Plugin) ensureMemory(spec volumes.Spec, dir string) error {
	table, err := p.mounter.Table()
	if err != nil || table.IsMountPoint(dir) {
		return err
	}
	return p.mounter.Tmpfs(dir, mount.TmpfsOptions{
		Mode: mode, NoSwap: true, Label: p.owner.Label(spec.Pod, spec.Volume.Name),
	})
}

// open opens a volume to write to it. The mount may have been taken away by hand since
// it was looked for: what is open is asked itself.
func (p Plugin) open(dir string) (*os.Root, error) {
	opened, err := os.OpenRoot(dir)
	if err != nil || !p.kind.InMemory {
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
