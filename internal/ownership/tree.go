package ownership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

const (
	// readBatch is how many names are read before they are inspected.
	readBatch = 1024
	// maxDepth is how many directories are held open at once: a tenant can nest deeper than
	// this process may open files.
	maxDepth = 64
	// longestPath is that of a directory which the kernel opens at once. What lies
	// deeper is left as it is.
	longestPath = unix.PathMax - 256
)

// Apply gives an open directory, and all that it holds, to the group. It repeats an earlier call
// that stopped at any point. It calls report now and then with the number of files so far. refused
// is how many files stay as they are. These are immutable ones, all on a file system without
// owners, and directories deeper than a path is long.
//
// Pods may change the tree during the walk. Each file is opened before it is inspected and changed,
// through no symlink and no mount, so that no other replaces it. Whatever pods rename or swap, only
// files with a name in the tree change, and a symlink itself, never its target. Devices never
// change.
//
// A hard link elsewhere to a file changes, too. No pod can make one: the kernel links only
// within one mount, and a pod's mount is the volume alone. The administrator can, and a pod
// that sees more of the disk by a hostPath.
//
// As with chown(1), a changed program loses setuid, setgid and its capabilities: a program
// that ran as one group would run as another.
func (g Group) Apply(ctx context.Context, dir *os.File, report func(files int64)) (refused int64, err error) {
	top, err := safepath.OpenToRead(dir, ".")
	if err != nil {
		return 0, err
	}
	defer top.Close()
	stat, err := statOf(top)
	if err != nil || g.OnMismatch && g.has(stat) {
		return 0, err
	}
	readOnly, err := isReadOnly(top)
	if err != nil || readOnly {
		return 0, err
	}
	w := &walk{ctx: ctx, group: g, top: top, report: report}
	if err := w.begin(stat); err != nil {
		return 0, err
	}
	if err := w.entries(); err != nil {
		return w.refused, err
	}
	return w.refused, w.change(top)
}

// walk is one tree that is being changed.
type walk struct {
	ctx            context.Context
	group          Group
	top            *os.File
	report         func(files int64)
	files, refused int64
	// deep are directories that lay too deep, and are begun from the top.
	deep []*entry
}

// entry is a name in the tree, by its way from the top; nil is the top.
type entry struct {
	parent *entry
	name   string
	// length is that of its path.
	length int
}

func (p *entry) at(name string) *entry {
	if p == nil {
		return &entry{nil, name, len(name)}
	}
	return &entry{p, name, p.length + len("/") + len(name)}
}

func (p *entry) path() string {
	if p.parent == nil {
		return p.name
	}
	return p.parent.path() + "/" + p.name
}

// begin clears setgid of a top directory with another group: a tree that is changed half way
// must not pass for that group's.
func (w *walk) begin(stat *unix.Stat_t) error {
	if int(stat.Gid) == w.group.ID || stat.Mode&unix.S_ISGID == 0 {
		return nil
	}
	return w.setMode(w.top, stat.Mode&allBits&^unix.S_ISGID)
}

// entries changes the tree, but for its top.
func (w *walk) entries() error {
	if err := w.list(w.top, nil, 1); err != nil {
		return err
	}
	for len(w.deep) > 0 {
		at := w.deep[len(w.deep)-1]
		w.deep = w.deep[:len(w.deep)-1]
		if err := w.descend(at); err != nil {
			return err
		}
	}
	return nil
}

// descend starts again with a directory that lay too deep.
func (w *walk) descend(at *entry) error {
	dir, err := safepath.OpenToRead(w.top, at.path())
	if safepath.IsElsewhere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return w.list(dir, at, 1)
}

// list changes all that a directory holds.
func (w *walk) list(dir *os.File, at *entry, depth int) error {
	for {
		if err := w.ctx.Err(); err != nil {
			return fmt.Errorf("giving %s to group %d: %w", w.top.Name(), w.group.ID, err)
		}
		names, err := dir.Readdirnames(readBatch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", dir.Name(), err)
		}
		for _, name := range names {
			if err := w.apply(dir, at.at(name), depth); err != nil {
				return err
			}
		}
		w.report(w.files)
	}
}

// apply changes one entry of a directory, with all that it holds.
func (w *walk) apply(dir *os.File, at *entry, depth int) error {
	var stat unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), at.name, &stat, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if safepath.IsElsewhere(err) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "looking at", Path: dir.Name() + "/" + at.name, Err: err}
	}
	w.files++
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return w.applyDir(dir, at, depth)
	}
	// Most have it already. A file that replaces this one during the walk gets its group from the pod.
	if w.group.has(&stat) {
		return nil
	}
	entry, err := safepath.OpenEntry(dir, at.name)
	if safepath.IsElsewhere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer entry.Close()
	return w.change(entry)
}

// applyDir changes a directory, and then what it holds: new entries inherit the group from
// then on.
func (w *walk) applyDir(dir *os.File, at *entry, depth int) error {
	child, err := safepath.OpenToRead(dir, at.name)
	if safepath.IsElsewhere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer child.Close()
	if err := w.change(child); err != nil {
		return err
	}
	switch {
	case at.length >= longestPath:
		w.refused++
		return nil
	case depth >= maxDepth:
		w.deep = append(w.deep, at)
		return nil
	}
	return w.list(child, at, depth+1)
}
