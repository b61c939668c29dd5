package filetree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

const (
	// sectorBytes is the unit in which the kernel counts what a file takes up.
	sectorBytes = 512
	// mostLinks is how many files of several names are remembered, to count each once.
	mostLinks = 100_000
)

// ErrTooLarge says that a tree has more files, or nests deeper, than may be inspected.
var ErrTooLarge = errors.New("too large to be measured")

// Tree is what a directory and all below it take up.
type Tree struct {
	Bytes, Inodes int64
}

// MeasureTree counts what a directory takes up, and inspects at most so many files. It follows
// no symlink and crosses no mount. It pauses half of the time, so that others get at the disk.
// It may miss what changes during the walk.
func MeasureTree(ctx context.Context, dir *os.File, most int64) (Tree, error) {
	top, err := safepath.OpenToRead(dir, ".")
	if err != nil {
		return Tree{}, err
	}
	defer top.Close()
	m := &measurement{ctx: ctx, most: most, links: map[uint64]bool{}}
	var stat unix.Stat_t
	if err := unix.Fstat(int(top.Fd()), &stat); err != nil {
		return Tree{}, fmt.Errorf("measuring %s: %w", dir.Name(), err)
	}
	m.device = stat.Dev
	m.count(&stat)
	return m.Tree, m.walk(top, 1)
}

// measurement is one tree that is being measured.
type measurement struct {
	Tree
	ctx    context.Context
	device uint64
	most   int64
	links  map[uint64]bool
}

// walk counts all that a directory holds.
func (m *measurement) walk(dir *os.File, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("measuring %s: %w", dir.Name(), ErrTooLarge)
	}
	for {
		began := time.Now()
		names, err := dir.Readdirnames(readBatch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("measuring %s: %w", dir.Name(), err)
		}
		var below []string
		for _, name := range names {
			isDir, err := m.inspect(dir, name)
			if err != nil {
				return err
			}
			if isDir {
				below = append(below, name)
			}
		}
		if err := m.rest(time.Since(began)); err != nil {
			return err
		}
		for _, name := range below {
			if err := m.descend(dir, name, depth); err != nil {
				return err
			}
		}
	}
}

// inspect counts one entry of a directory, and reports whether it is a directory.
func (m *measurement) inspect(dir *os.File, name string) (isDir bool, err error) {
	var stat unix.Stat_t
	err = unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("measuring %s: %w", dir.Name(), err)
	}
	if stat.Dev != m.device {
		return false, nil
	}
	if m.Inodes >= m.most {
		return false, fmt.Errorf("measuring %s: it has more than %d files: %w", dir.Name(), m.most, ErrTooLarge)
	}
	m.count(&stat)
	return stat.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

func (m *measurement) count(stat *unix.Stat_t) {
	isDir := stat.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isDir && stat.Nlink > 1 {
		if m.links[stat.Ino] {
			return
		}
		if len(m.links) < mostLinks {
			m.links[stat.Ino] = true
		}
	}
	m.Inodes++
	m.Bytes += stat.Blocks * sectorBytes
}

func (m *measurement) descend(dir *os.File, name string, depth int) error {
	child, err := safepath.OpenToRead(dir, name)
	if safepath.IsElsewhere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer child.Close()
	return m.walk(child, depth+1)
}

// rest pauses for as long as the work took.
func (m *measurement) rest(worked time.Duration) error {
	pause := time.NewTimer(worked)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-m.ctx.Done():
		return m.ctx.Err()
	}
}
