// Package quota limits how much of a disk a directory may take up, with the project quotas of the
// disk's file system (xfs, ext4). What is made in such a directory belongs to its project, and the
// kernel refuses what exceeds the project's limit.
//
// The node agent limits volumes with it. It never turns quotas on: a file system has
// them from when it was mounted, with option prjquota. Nor does it keep a record: the
// project of a directory is in its inode.
package quota

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"

	"golang.org/x/sys/unix"
)

// ErrFull says that every project is in use.
var ErrFull = errors.New("no project of the file system's quotas is free")

const (
	// firstProject is the lowest that is taken: administrators number their own from 1.
	firstProject Project = 1 << 30
	// tries is how many projects a name may have: it gets the first that is free.
	tries = 64
	// sectorBytes is the unit in which the kernel counts.
	sectorBytes = 512
)

// Project is the number of a project, one on each file system. 0 is none.
type Project uint32

// MayBeOf reports whether Begin may have chosen a project for a name. The owner of a directory
// can set any other project: that is never limited, because it may belong to another
// directory.
func (p Project) MayBeOf(name string) bool {
	for i := range Project(tries) {
		if p == candidate(name, i) {
			return true
		}
	}
	return false
}

func candidate(name string, i Project) Project {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return firstProject + (Project(hash.Sum32())%firstProject+i)%firstProject
}

// Usage is what a project takes up, and may at most.
type Usage struct {
	// Bytes and Inodes are taken up.
	Bytes, Inodes int64
	// Limit is what may be.
	Limit Limits
}

// Limits are what a project may take up at most. 0 is no limit.
type Limits struct{ Bytes, Inodes int64 }

// Enforced reports whether the file system of a directory keeps projects within their limits.
// A kernel or a file system without quotas doesn't.
func Enforced(dir *os.File) (bool, error) {
	state, err := stateOf(dir)
	for _, none := range []error{unix.ENOSYS, unix.ENOTSUP, unix.ESRCH, unix.EINVAL, unix.ENOTTY, unix.ENODEV} {
		if errors.Is(err, none) {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("asking for the quotas of %s: %w", dir.Name(), err)
	}
	const enforced = projectAccounting | projectEnforcement
	return state.flags&enforced == enforced, nil
}

// Begin puts an empty directory into a project of its own with these limits. It derives the
// project from the name, so that a repeat after a crash gets the same one. Not safe for
// concurrent use on one file system.
func Begin(dir *os.File, name string, limits Limits) error {
	project, err := choose(dir, name)
	if err != nil {
		return err
	}
	// The limits first: a directory is never without them that has a project.
	if err := SetLimits(dir, project, limits); err != nil {
		return err
	}
	return setProject(dir, project)
}

// choose finds a project without files. A crash leaves one with a limit alone.
func choose(dir *os.File, name string) (Project, error) {
	for i := range Project(tries) {
		project := candidate(name, i)
		usage, err := Of(dir, project)
		if err != nil {
			return 0, err
		}
		if usage.Inodes == 0 && usage.Bytes == 0 {
			return project, nil
		}
	}
	return 0, fmt.Errorf("choosing a project for %s: %w", dir.Name(), ErrFull)
}

// ProjectOf is the project of a directory, 0 where it has none.
func ProjectOf(dir *os.File) (Project, error) {
	attributes, err := attributesOf(dir)
	for _, none := range []error{unix.ENOTTY, unix.ENOTSUP, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, none) {
			return 0, nil
		}
	}
	if err != nil {
		return 0, fmt.Errorf("asking for the project of %s: %w", dir.Name(), err)
	}
	if attributes.flags&inherit == 0 {
		return 0, nil
	}
	return Project(attributes.project), nil
}

func setProject(dir *os.File, project Project) error {
	attributes, err := attributesOf(dir)
	if err == nil {
		attributes.project = uint32(project)
		attributes.flags |= inherit
		err = setAttributes(dir, attributes)
	}
	if err != nil {
		return fmt.Errorf("giving %s to project %d: %w", dir.Name(), project, err)
	}
	return nil
}

// Of is what a project takes up of the file system that a directory lies on.
func Of(dir *os.File, project Project) (Usage, error) {
	quota := diskQuota{version: quotaVersion}
	err := control(dir, getQuota, project, &quota)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return Usage{}, nil // the project has no limit and no file yet
	}
	if err != nil {
		return Usage{}, fmt.Errorf("asking what project %d of %s takes up: %w", project, dir.Name(), err)
	}
	return Usage{
		Bytes: int64(quota.blocks) * sectorBytes, Inodes: int64(quota.inodes),
		Limit: Limits{Bytes: int64(quota.blockHard) * sectorBytes, Inodes: int64(quota.inodeHard)},
	}, nil
}

// SetLimits limits a project. The kernel counts in whole blocks: a limit of bytes is rounded
// up to 512. A limit below the usage removes nothing.
func SetLimits(dir *os.File, project Project, limits Limits) error {
	quota := diskQuota{version: quotaVersion, flags: ofProject, fields: fieldBlockHard | fieldInodeHard, project: uint32(project)}
	quota.blockHard = uint64(limits.Bytes+sectorBytes-1) / sectorBytes
	quota.inodeHard = uint64(limits.Inodes)
	if err := control(dir, setLimit, project, &quota); err != nil {
		return fmt.Errorf("limiting project %d of %s to %d bytes and %d inodes: %w", project, dir.Name(), limits.Bytes, limits.Inodes, err)
	}
	return nil
}
