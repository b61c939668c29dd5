// Package mounttest has a mount.Mounter that keeps its mounts in memory, for
// tests that need no root. Nothing becomes visible anywhere: the directories
// and files of a test stay as they are.
package mounttest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stowage-dev/stowage/internal/mount"
)

// rootID is the mount that everything else lies on.
const rootID = 1

// Fake is a mount.Mounter in memory. Its zero value has nothing mounted.
type Fake struct {
	mu     sync.Mutex
	table  mount.Table
	last   int
	refuse map[string]error
}

var _ mount.Mounter = &Fake{}

// Refuse makes every mount and unmount at path an error, until it is called
// again with nil.
func (f *Fake) Refuse(path string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse == nil {
		f.refuse = map[string]error{}
	}
	f.refuse[path] = err
}

// Bind implements mount.Mounter.
func (f *Fake) Bind(source *os.File, target string, access mount.Access) error {
	return f.add(mount.Point{Device: "8:1", Root: source.Name(), Path: target, FSType: "ext4", Source: "/dev/fake", Access: access})
}

// BindTree implements mount.Mounter. Nothing is carried over.
func (f *Fake) BindTree(source *os.File, target string, options mount.TreeOptions) error {
	return f.Bind(source, target, options.Access)
}

// MakePrivate implements mount.Mounter. All of its mounts are private.
func (*Fake) MakePrivate(string) error { return nil }

// Tmpfs implements mount.Mounter.
func (f *Fake) Tmpfs(target string, _ mount.TmpfsOptions) error {
	return f.add(mount.Point{Device: "0:99", Root: "/", Path: target, FSType: "tmpfs", Source: "tmpfs"})
}

// FileSystem implements mount.Mounter. The device of loop1 is 7:1.
func (f *Fake) FileSystem(system mount.FileSystem, target string) error {
	device := "7:" + strings.TrimPrefix(filepath.Base(system.Source), "loop")
	return f.add(mount.Point{Device: device, Root: "/", Path: target, FSType: system.Type, Source: system.Source, Access: system.Access})
}

// Unmount implements mount.Mounter.
func (f *Fake) Unmount(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refuse[path]; err != nil {
		return err
	}
	top, found := f.table.At(path)
	if !found {
		return nil
	}
	f.table = slices.DeleteFunc(f.table, func(point mount.Point) bool { return point.ID == top.ID })
	return nil
}

// Table implements mount.Mounter.
func (f *Fake) Table() (mount.Table, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.table), nil
}

// IsMountPoint implements mount.Mounter.
func (f *Fake) IsMountPoint(path string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.table.IsMountPoint(path), nil
}

func (f *Fake) add(point mount.Point) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refuse[point.Path]; err != nil {
		return err
	}
	if info, err := os.Lstat(point.Path); err != nil {
		return err
	} else if !info.IsDir() {
		return &os.PathError{Op: "mounting at", Path: point.Path, Err: os.ErrInvalid}
	}
	f.last++
	point.ID, point.Parent = rootID+f.last, rootID
	if under, found := f.table.At(point.Path); found {
		point.Parent = under.ID
	}
	f.table = append(f.table, point)
	return nil
}
