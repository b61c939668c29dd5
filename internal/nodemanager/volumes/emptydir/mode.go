package emptydir

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

const (
	// anyUser lets every user that a pod's containers run as write.
	anyUser = 0o777
	// mountPointMode is the mode of mount points of memory.
	mountPointMode = 0o750
)

// modeOf is the mode and the group of a volume's top directory.
func modeOf(spec volumes.Spec) (mode uint32, group int) {
	mode = anyUser
	if asked := spec.Volume.EmptyDir.Mode; asked != nil {
		mode = uint32(*asked)
	}
	fsGroup, wanted := ownership.GroupOf(spec.Pod, mount.ReadWrite)
	if !wanted {
		return mode, 0
	}
	return fsGroup.DirMode(mode), fsGroup.ID
}

// own sets the group and mode of a directory that isn't published yet.
func own(dir *os.File, path string, spec volumes.Spec) error {
	mode, group := modeOf(spec)
	if err := unix.Fchownat(int(dir.Fd()), "", -1, group, unix.AT_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "setting the group of directory", Path: dir.Name(), Err: err}
	}
	if err := unix.Chmod(path, mode); err != nil {
		return &os.PathError{Op: "setting the mode of directory", Path: dir.Name(), Err: err}
	}
	return nil
}
