package emptydir

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/quota"
)

// limits are the project quotas of volumes on disk. A project is chosen by the path of its volume,
// which contains a pod's UID.
type limits struct {
	// choosing serialises the choice of projects.
	choosing sync.Mutex
}

// begin limits the empty directory that is to be at path, where its disk keeps quotas.
func (l *limits) begin(parent, begun *os.File, path string, bytes int64) error {
	enforced, err := quota.Enforced(begun)
	if err != nil || !enforced {
		return err
	}
	// The kernel moves nothing out of another project.
	project, err := quota.ProjectOf(parent)
	if err != nil || project != 0 {
		return err
	}
	l.choosing.Lock()
	defer l.choosing.Unlock()
	return quota.Begin(begun, path, quota.Limits{Bytes: bytes})
}

// drop removes the limit of the directory at path, if it has one.
func (l *limits) drop(path string) error {
	dir, err := openPlain(path)
	if dir == nil || err != nil {
		return err
	}
	defer dir.Close()
	project, err := limitedBy(dir, path)
	if err != nil || project == 0 {
		return err
	}
	return quota.SetLimits(dir, project, quota.Limits{})
}

// limitedBy is the project that limits the directory at path; 0 if none does. A pod can set any
// other project on a directory that it owns.
func limitedBy(dir *os.File, path string) (quota.Project, error) {
	enforced, err := quota.Enforced(dir)
	if err != nil || !enforced {
		return 0, err
	}
	project, err := quota.ProjectOf(dir)
	if err != nil || !project.MayBeOf(path) {
		return 0, err
	}
	return project, nil
}

// openPlain opens the directory at path, which no pod can replace; nil if there is none. A file in
// its place is an error of the removal.
func openPlain(path string) (*os.File, error) {
	dir, err := safepath.OpenBeneath(path, path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	return dir, err
}
