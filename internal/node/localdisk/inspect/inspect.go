// Package inspect looks at a volume that was made: how much of it is used, whether its disk
// or file system fails, and whether either is nearly full. It only reads. A disk that can't
// be read is a problem of the volume; a look that fails for another reason says nothing.
package inspect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
)

// sceneAge is how old a view of all mounts and loop devices may be: volumes are looked
// at one by one, and each view costs as much as there are.
const sceneAge = 10 * time.Second

// Snapshot is what the node had mounted at a moment.
type Snapshot struct {
	taken    time.Time
	table    mount.Table
	attached loopdev.Attached
}

// Snapshots keeps the newest scene. Its zero value is usable.
type Snapshots struct {
	mu     sync.Mutex
	newest *Snapshot
}

// At is a scene that is nearly as new as now.
func (s *Snapshots) At(now time.Time) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest != nil && now.Sub(s.newest.taken) < sceneAge && !now.Before(s.newest.taken) {
		return s.newest, nil
	}
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return nil, err
	}
	attached, err := loopdev.ReadAttached()
	if err != nil {
		return nil, err
	}
	s.newest = &Snapshot{taken: now, table: table, attached: attached}
	return s.newest, nil
}

// Report is what a look at a volume showed.
type Report struct {
	// Usage is nil where nobody knows.
	Usage *usage.Usage
	// enforced: the capacity is a limit.
	Enforced bool
	// mostInodes is how many inodes it may have; 0 where that isn't limited.
	mostInodes int64
	// uncounted: it has more files than are counted.
	Uncounted bool
	Troubles  []Trouble
}

func (s *Report) add(reason, format string, arguments ...any) {
	s.Troubles = append(s.Troubles, Trouble{reason, fmt.Sprintf(format, arguments...)})
}

// Volume looks at a volume that is there. Had is the reason of its last trouble.
func Volume(base layout.Base, volume layout.Volume, at *Snapshot, had string) (seen Report, err error) {
	dir, err := base.Open(volume.Directory())
	if err != nil {
		return seen, err
	}
	defer dir.Close()
	if err := checkDisk(base, &seen, volume, had); err != nil {
		return seen, err
	}
	if volume.Image == nil {
		err = seen.checkDirectory(dir, volume)
		return seen, err
	}
	seen.Enforced = true
	err = seen.checkImage(dir, volume, at)
	return seen, err
}

// checkDisk looks at the file system that a volume's folder lies on. That of its own
// directory tells of the quota, where it has one.
func checkDisk(base layout.Base, seen *Report, volume layout.Volume, had string) error {
	folder, err := base.Open(volume.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return fmt.Errorf("asking for the size of the disk at %s: %w", volume.Path, err)
	}
	if stat.Flags&unix.ST_RDONLY != 0 {
		seen.add(stowagev1alpha1.ReasonFileSystemReadOnly, "the disk at %s can't be written: look at the node's kernel log", volume.Path)
	}
	size, free := int64(stat.Blocks)*stat.Frsize, int64(stat.Bavail)*stat.Frsize
	seen.checkInodes(stat, volume, had)
	needsRoom := volume.Image == nil || volume.Image.Sparse
	if needsRoom && isNearlyFull(size-free, size, had == stowagev1alpha1.ReasonDiskNearlyFull) {
		seen.add(stowagev1alpha1.ReasonDiskNearlyFull, "the disk at %s is nearly full, and the volume gets what it needs from there: remove files, or volumes", volume.Path)
	}
	return nil
}

// checkReads is an error if a directory can't be read.
func checkReads(dir *os.File) error {
	readable, err := os.Open(device.PathOf(dir))
	if err != nil {
		return fmt.Errorf("reading %s: %w", dir.Name(), err)
	}
	defer readable.Close()
	if _, err := readable.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading %s: %w", dir.Name(), err)
	}
	return nil
}
