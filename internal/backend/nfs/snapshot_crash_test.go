package nfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

// aside are the places of what is being copied.
var aside = []string{".stowage/snapshots/snapshot-a.copy", ".stowage/restoring/" + backendtest.Request("2").ID}

func (w *world) mustHaveContent(t *testing.T, path, want string) {
	t.Helper()
	if content, err := os.ReadFile(w.folder + "/" + path); string(content) != want || err != nil {
		t.Errorf("%s has %q, %v", path, content, err)
	}
}

func TestASnapshotInterruptedAnywhereIsMadeWholeByAnother(t *testing.T) {
	interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
		opened := w.open(t)
		mustProvision(t, opened, backendtest.Request("1"))
		w.put(t, data+"/deep/state", "before")
		interrupt()
		_, err := opened.CreateSnapshot(t.Context(), ofVolume("1"))
		return err
	}, func(t *testing.T, w *world) {
		made := mustSnapshot(t, w.open(t))
		w.mustHaveContent(t, ".stowage/snapshots/"+made.Handle+"/deep/state", "before")
		w.mustLack(t, aside...)
		must(t, w.open(t).DeleteSnapshot(t.Context(), made.Handle))
		w.mustLack(t, ".stowage/snapshots/"+made.Handle, ".stowage/snapshots/"+made.Handle+".json")
	})
}

// copies are what a claim's volume can be a copy of.
var copies = map[string]backend.Request{"a snapshot": restoredFrom("snapshot-a"), "another claim's volume": copyOf("1")}

// interruptCopies makes such a volume, and is interrupted. The directory has its name only with all that is to be in it.
func interruptCopies(t *testing.T, follow func(t *testing.T, w *world, request backend.Request)) {
	t.Helper()
	for name, request := range copies {
		t.Run(name, func(t *testing.T) {
			interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
				opened := w.open(t)
				mustProvision(t, opened, backendtest.Request("1"))
				w.put(t, data+"/state", "before")
				w.put(t, data+"/other", "too")
				mustSnapshot(t, opened)
				interrupt()
				_, err := opened.Provision(t.Context(), request)
				return err
			}, func(t *testing.T, w *world) {
				if there, _ := filepath.Glob(w.folder + "/" + copied); len(there) > 0 {
					w.mustHaveContent(t, copied+"/state", "before")
					w.mustHaveContent(t, copied+"/other", "too")
				}
				follow(t, w, request)
			})
		})
	}
}

func TestACopyForAClaimInterruptedAnywhereIsMadeWholeByAnother(t *testing.T) {
	interruptCopies(t, func(t *testing.T, w *world, request backend.Request) {
		mustProvision(t, w.open(t), request)
		w.mustHaveContent(t, copied+"/state", "before")
		w.mustHaveContent(t, copied+"/other", "too")
		w.mustLack(t, aside...)
	})
}

func TestACopyForAClaimInterruptedAnywhereIsUndone(t *testing.T) {
	interruptCopies(t, func(t *testing.T, w *world, _ backend.Request) {
		must(t, w.open(t).Delete(t.Context(), backendtest.Request("2").ID))
		w.mustLack(t, copied, recordPath("pvc-2"), directories+"/"+copied, deleting+"/pvc-2")
		w.mustLack(t, aside...)
		w.mustHaveContent(t, data+"/state", "before")
		w.mustHaveContent(t, ".stowage/snapshots/snapshot-a/state", "before")
	})
}

func TestADeletionOfASnapshotInterruptedAnywhereIsCompleted(t *testing.T) {
	interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
		opened := w.open(t)
		mustProvision(t, opened, backendtest.Request("1"))
		w.put(t, data+"/state", "before")
		mustSnapshot(t, opened)
		interrupt()
		return opened.DeleteSnapshot(t.Context(), "snapshot-a")
	}, func(t *testing.T, w *world) {
		must(t, w.open(t).DeleteSnapshot(t.Context(), "snapshot-a"))
		w.mustLack(t, ".stowage/snapshots/snapshot-a", ".stowage/snapshots/snapshot-a.json")
		w.mustHaveContent(t, data+"/state", "before")
	})
}
