package localvolume

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
	"github.com/stowage-dev/stowage/internal/mount"
)

// sceneAge is how old a view of all mounts and loop devices may be: volumes are looked
// at one by one, and each view costs as much as there are.
const sceneAge = 10 * time.Second

// scene is what the node had mounted at a moment.
type scene struct {
	taken    time.Time
	table    mount.Table
	attached device.Attached
}

// scenes keeps the newest scene. Its zero value is usable.
type scenes struct {
	mu     sync.Mutex
	newest *scene
}

// at is a scene that is nearly as new as now.
func (s *scenes) at(now time.Time) (*scene, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest != nil && now.Sub(s.newest.taken) < sceneAge && !now.Before(s.newest.taken) {
		return s.newest, nil
	}
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return nil, err
	}
	attached, err := device.ReadAttached()
	if err != nil {
		return nil, err
	}
	s.newest = &scene{taken: now, table: table, attached: attached}
	return s.newest, nil
}

// sight is what a look at a volume showed.
type sight struct {
	// usage is nil where nobody knows.
	usage *Usage
	// enforced: the capacity is a limit.
	enforced bool
	// mostInodes is how many inodes it may have; 0 where that isn't limited.
	mostInodes int64
	// uncounted: it has more files than are counted.
	uncounted bool
	troubles  []trouble
}

func (s *sight) add(reason, format string, arguments ...any) {
	s.troubles = append(s.troubles, trouble{reason, fmt.Sprintf(format, arguments...)})
}

// look looks at a volume that is there. Had is the reason of its last trouble.
func look(base Base, volume Volume, at *scene, had string) (seen sight, err error) {
	dir, err := base.open(volume.directory())
	if err != nil {
		return seen, err
	}
	defer dir.Close()
	if err := lookAtDisk(base, &seen, volume, had); err != nil {
		return seen, err
	}
	if volume.Image == nil {
		err = seen.lookAtDirectory(dir, volume)
		return seen, err
	}
	seen.enforced = true
	err = seen.lookAtImage(dir, volume, at)
	return seen, err
}

// lookAtDisk looks at the file system that a volume's folder lies on. That of its own
// directory tells of the quota, where it has one.
func lookAtDisk(base Base, seen *sight, volume Volume, had string) error {
	folder, err := base.open(volume.Path)
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
	seen.lookAtInodes(stat, volume, had)
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
