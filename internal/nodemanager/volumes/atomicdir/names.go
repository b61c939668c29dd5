package atomicdir

import (
	"errors"
	"os"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
)

// linkNames makes the links at the top of the volume. A folder with the name of a link stays:
// another volume is mounted on it, or will be.
func (w *writer) linkNames() error {
	for name := range w.wanted.names() {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		info, err := w.dir.Lstat(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case info.IsDir() || w.isLink(name):
			continue
		default:
			if err := w.dir.Remove(name); err != nil {
				return err
			}
		}
		if err := w.dir.Symlink(linkTo(name), name); err != nil {
			return err
		}
	}
	return nil
}

// unlinkNames removes the links to removed files.
func (w *writer) unlinkNames() error {
	names, err := w.list()
	if err != nil {
		return err
	}
	wanted := w.wanted.names()
	for _, name := range names {
		if _, isWanted := wanted[name]; isWanted || strings.HasPrefix(name, ownPrefix) || !w.isLink(name) {
			continue
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := w.dir.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// isLink reports whether linkNames made a link.
func (w *writer) isLink(name string) bool {
	target, err := w.dir.Readlink(name)
	return err == nil && target == linkTo(name)
}

func linkTo(name string) string { return pointer + "/" + name }

// removeAllBut removes this package's own names, except one version and the pointer to it; "": all.
func (w *writer) removeAllBut(version string) error {
	names, err := w.list()
	if err != nil {
		return err
	}
	for _, name := range names {
		isKept := version != "" && (name == version || name == pointer)
		if isKept || !strings.HasPrefix(name, ownPrefix) {
			continue
		}
		if err := w.remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) remove(name string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.dir.Remove(name); err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	parent, err := w.dir.Open(".")
	if err != nil {
		return err
	}
	defer parent.Close()
	return filetree.RemoveTree(w.ctx, parent, name)
}

func (w *writer) list() ([]string, error) {
	dir, err := w.dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}
