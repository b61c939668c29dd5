package nfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/backend/nfs/recycle"
)

func TestATenantsEntryWithTheWorkFoldersNameIsRecycledToo(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a file": func(path string) error { return os.WriteFile(path, []byte("data"), 0o600) },
		"a link": func(path string) error { return os.Symlink("../canary", path) },
		"a FIFO": func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fill(t)
			must(t, put(filepath.Join(w.folder, recycle.Folder)))
			mustRecycle(t.Context(), t, w.kind, w.recycling("one"))
			w.mustBeEmpty(t)
		})
	}
}

func TestAStaleCallerRemovesNothingThoughATenantTookTheWorkFolder(t *testing.T) {
	w := newWorld(t)
	w.put(t, recycle.Folder, "data")
	testLate(t, w)
}

func TestAnotherCallerCompletesARecyclingThoughATenantTookTheWorkFolder(t *testing.T) {
	interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
		w.put(t, recycle.Folder, "data")
		w.put(t, "data/file", "data")
		interrupt()
		return w.kind.Recycle(t.Context(), w.recycling("one"))
	}, func(t *testing.T, w *world) {
		mustRecycle(t.Context(), t, w.kind, w.recycling("two"))
		w.mustBeEmpty(t)
	})
}
