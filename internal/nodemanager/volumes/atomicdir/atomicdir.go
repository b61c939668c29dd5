// Package atomicdir writes files into a directory so that readers see all of them change at once.
// Projected volumes are written with it. The layout is the kubelet's, which programs in pods rely
// on:
//
//	..2026_01_02_15_04_05.123456   a version: the files, never changed
//	..data -> ..2026_01_02_15_04_05.123456
//	name -> ..data/name            for each name at the top of the volume
//
// Names that begin with ".." are its own; of the others, it removes only those that it made. Whatever
// a pod does to the directory during a write, nothing outside of it is read, written or removed. All
// work is done below the open directory, and no symlink is trusted. A write that is interrupted
// anywhere is finished, or undone, by the next one.
package atomicdir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// IsWritten reports whether a write got so far that all of its files are visible.
func IsWritten(dir *os.Root) bool {
	return currentVersion(dir) != ""
}

// Write replaces the files of earlier writes by these. Files have the group, which may read them;
// nil: this process's group. Unchanged files aren't written. A directory has one Write at a time.
func Write(ctx context.Context, dir *os.Root, files content.Files, group *int64) error {
	w := &writer{ctx: ctx, dir: dir, wanted: folderOf(files), group: group}
	current := currentVersion(dir)
	if err := w.removeAllBut(current); err != nil {
		return fmt.Errorf("removing what an earlier write left: %w", err)
	}
	// Before the first version is current, so that all names appear with it.
	if err := w.linkNames(); err != nil {
		return fmt.Errorf("linking the names of files: %w", err)
	}
	if !w.isCurrent(current) {
		if err := w.replace(); err != nil {
			return err
		}
	}
	if err := w.unlinkNames(); err != nil {
		return fmt.Errorf("removing the names of removed files: %w", err)
	}
	return nil
}

// replace writes a version, makes it current, and removes the previous one.
func (w *writer) replace() error {
	version := newVersion()
	if err := w.writeFolder(w.dir, version, w.wanted); err != nil {
		return fmt.Errorf("writing the files: %w", err)
	}
	if err := w.point(version); err != nil {
		return fmt.Errorf("making the files current: %w", err)
	}
	if err := w.removeAllBut(version); err != nil {
		return fmt.Errorf("removing the previous files: %w", err)
	}
	return nil
}

// point makes a version current, atomically for readers.
func (w *writer) point(version string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.dir.Symlink(version, nextPointer); err != nil {
		return err
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.dir.Rename(nextPointer, pointer)
}

// newVersion returns a name that no pod can predict.
func newVersion() string {
	return fmt.Sprintf("%s%s.%d", ownPrefix, time.Now().UTC().Format("2006_01_02_15_04_05"), rand.Uint32())
}

// currentVersion is the version that the pointer leads to; "" if none. A pointer to elsewhere isn't
// this package's.
func currentVersion(dir *os.Root) string {
	version, err := dir.Readlink(pointer)
	if err != nil || !isVersion(version) {
		return ""
	}
	if info, err := dir.Lstat(version); err != nil || !info.IsDir() {
		return ""
	}
	return version
}

func isVersion(name string) bool {
	return strings.HasPrefix(name, ownPrefix) && name != ownPrefix && name != pointer && name != nextPointer && !strings.Contains(name, "/")
}
