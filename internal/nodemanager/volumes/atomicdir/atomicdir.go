// Package atomicdir writes files into a directory so that whoever looks sees all of them
// change at once. Volumes that show objects of the API server are written with it. The
// layout is the kubelet's, which programs in pods rely on:
//
//	..2026_01_02_15_04_05.123456   a version: the files, never changed
//	..data -> ..2026_01_02_15_04_05.123456
//	name -> ..data/name            for each name at the top of the volume
//
// Names that begin with ".." are its own; of the others, it removes only those that it
// made. Whatever a pod does to the directory meanwhile, nothing outside of it is read,
// written or removed: all work is done below the open directory, and no symlink is
// trusted. A write that is cut off anywhere is finished, or undone, by the next one.
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

const ()

// IsWritten says whether a write was finished so far that all of its files are seen.
func IsWritten(dir *os.Root) bool {
	return currentVersion(dir) != ""
}

// Write makes a directory show these files, and no others that it showed before. Files
// belong to the group, which may read them; nil: to this process's. Nothing is written
// if nothing changed. One at a time may write to a directory.
func Write(ctx context.Context, dir *os.Root, files content.Files, group *int64) error {
	w := &writer{ctx: ctx, dir: dir, wanted: folderOf(files), group: group}
	shown := currentVersion(dir)
	if err := w.removeAllBut(shown); err != nil {
		return fmt.Errorf("removing what an earlier write left: %w", err)
	}
	// Before the first version is shown, so that all names appear with it.
	if err := w.linkNames(); err != nil {
		return fmt.Errorf("showing the names of files: %w", err)
	}
	if !w.isShown(shown) {
		if err := w.replace(); err != nil {
			return err
		}
	}
	if err := w.unlinkNames(); err != nil {
		return fmt.Errorf("removing the names of files that aren't shown any more: %w", err)
	}
	return nil
}

// replace writes a version, shows it, and removes the one before.
func (w *writer) replace() error {
	version := newVersion()
	if err := w.writeFolder(w.dir, version, w.wanted); err != nil {
		return fmt.Errorf("writing the files: %w", err)
	}
	if err := w.point(version); err != nil {
		return fmt.Errorf("showing the files: %w", err)
	}
	if err := w.removeAllBut(version); err != nil {
		return fmt.Errorf("removing the files that were shown before: %w", err)
	}
	return nil
}

// point makes a version the one that is shown, in one step for whoever looks.
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

// newVersion is a name that nobody can foresee.
func newVersion() string {
	return fmt.Sprintf("%s%s.%d", ownPrefix, time.Now().UTC().Format("2006_01_02_15_04_05"), rand.Uint32())
}

// currentVersion is the version that is shown; "" if none is. Where the pointer leads
// elsewhere, somebody else made it.
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
