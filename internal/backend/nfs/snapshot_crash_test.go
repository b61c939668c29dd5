package nfs

import (
	"os"
	"testing"

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

// restore restores a snapshot, and is interrupted.
func restore(t *testing.T, w *world, interrupt func()) error {
	t.Helper()
	opened := w.open(t)
	mustProvision(t, opened, backendtest.Request("1"))
	w.put(t, data+"/state", "before")
	mustSnapshot(t, opened)
	interrupt()
	_, err := opened.Provision(t.Context(), restoredFrom("snapshot-a"))
	return err
}

func TestARestoreInterruptedAnywhereIsMadeWholeByAnother(t *testing.T) {
	interruptAnywhere(t, restore, func(t *testing.T, w *world) {
		mustProvision(t, w.open(t), restoredFrom("snapshot-a"))
		w.mustHaveContent(t, "default-claim-2-2/state", "before")
		w.mustLack(t, aside...)
	})
}

func TestARestoreInterruptedAnywhereIsUndone(t *testing.T) {
	interruptAnywhere(t, restore, func(t *testing.T, w *world) {
		must(t, w.open(t).Delete(t.Context(), backendtest.Request("2").ID))
		w.mustLack(t, "default-claim-2-2", recordPath("pvc-2"), directories+"/default-claim-2-2", deleting+"/pvc-2")
		w.mustLack(t, aside...)
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
