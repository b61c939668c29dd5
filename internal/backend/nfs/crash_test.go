package nfs

import (
	"fmt"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
)

const (
	procSetAttr = 2
	procWrite   = 7
	procRename  = 14
	procLink    = 15
	procCommit  = 21
	dropCall    = nfstest.DropCall
)

// faultAt makes a fault in the nth call of a procedure.
func faultAt(procedure uint32, nth int, fault nfstest.Fault) func(nfstest.Call) nfstest.Fault {
	seen := 0
	return func(call nfstest.Call) nfstest.Fault {
		if call.Procedure == procedure {
			seen++
		}
		if call.Procedure == procedure && seen == nth {
			return fault
		}
		return nfstest.None
	}
}

// after drops all calls that come after the nth of a procedure.
func after(procedure uint32, nth int) func(nfstest.Call) nfstest.Fault {
	seen := 0
	return func(call nfstest.Call) nfstest.Fault {
		if seen == nth {
			return nfstest.DropCall
		}
		if call.Procedure == procedure {
			seen++
		}
		return nfstest.None
	}
}

// interruptions drops all calls from the nth on that changes the share: the manager crashed, or the network.
type interruptions struct{ nth, changes int }

func (i *interruptions) fault(call nfstest.Call) nfstest.Fault {
	if changesShare(call.Procedure) {
		i.changes++
	}
	if i.came() {
		return nfstest.DropCall
	}
	return nfstest.None
}

// came reports whether a call was dropped.
func (i *interruptions) came() bool { return i.changes >= i.nth }

func changesShare(procedure uint32) bool {
	return procedure == procSetAttr || procWrite <= procedure && procedure <= procLink || procedure == procCommit
}

// interruptAnywhere runs an operation again and again, in a new world each time, that
// is cut off before its first change of the share, before its second, and so on, until
// it is through. What follows is done by another process. For that one, a reply that is lost and
// a call in between that only reads are no other case: the share is as it was at the next change.
func interruptAnywhere(t *testing.T, operate func(t *testing.T, w *world, interrupt func()) error, follow func(t *testing.T, w *world)) {
	t.Helper()
	through := false
	for nth := 1; !through; nth++ {
		t.Run(fmt.Sprintf("before change %d", nth), func(t *testing.T) {
			w, cut := newWorld(t), &interruptions{nth: nth}
			err := operate(t, w, func() { w.proxy.Plan(cut.fault) })
			w.proxy.Plan(nil)
			through = err == nil && !cut.came()
			w.kind = newKind(t, thisCluster, "")
			follow(t, w)
		})
	}
}

func TestAProvisionInterruptedAnywhereIsResumed(t *testing.T) {
	nested, request := template("{{namespace}}/{{name}}"), requestFor("a", "data", "1")
	interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
		interrupt()
		_, err := w.open(t, nested).Provision(t.Context(), request)
		return err
	}, func(t *testing.T, w *world) {
		mustProvision(t, w.open(t, nested), request)
		w.mustHave(t, "a/data", recordPath("pvc-1"), directories+"/a/data")
		must(t, w.open(t, nested).Delete(t.Context(), "pvc-1"))
		w.mustLack(t, "a/data", recordPath("pvc-1"), directories+"/a/data")
	})
}

func TestAProvisionInterruptedAnywhereIsUndone(t *testing.T) {
	interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
		interrupt()
		_, err := w.open(t).Provision(t.Context(), requestFor("a", "data", "1"))
		return err
	}, func(t *testing.T, w *world) {
		must(t, w.open(t).Delete(t.Context(), "pvc-1"))
		w.mustLack(t, "a-data-1", recordPath("pvc-1"), directories+"/a-data-1")
	})
}

func TestADeletionInterruptedAnywhereIsCompleted(t *testing.T) {
	for end, kept := range map[stowagev1alpha1.NFSDeletion]string{
		stowagev1alpha1.NFSDelete:  recordPath("pvc-2"),
		stowagev1alpha1.NFSArchive: archived + "/a_data_pvc-1/deep/file",
		stowagev1alpha1.NFSRetain:  "a-data-1/deep/file",
	} {
		t.Run(string(end), func(t *testing.T) {
			interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
				opened := w.open(t, onDelete(end))
				mustProvision(t, opened, requestFor("a", "data", "1"))
				mustProvision(t, opened, requestFor("b", "data", "2"))
				w.put(t, "a-data-1/deep/file", "data")
				interrupt()
				return opened.Delete(t.Context(), "pvc-1")
			}, func(t *testing.T, w *world) {
				must(t, w.open(t, onDelete(end)).Delete(t.Context(), "pvc-1"))
				w.mustLack(t, recordPath("pvc-1"), deleting+"/pvc-1")
				w.mustHave(t, kept, "b-data-2", recordPath("pvc-2"))
			})
		})
	}
}

func TestARetentionInterruptedAnywhereIsCompleted(t *testing.T) {
	interruptAnywhere(t, func(t *testing.T, w *world, interrupt func()) error {
		opened := w.open(t)
		mustProvision(t, opened, requestFor("a", "data", "1"))
		w.put(t, "a-data-1/file", "data")
		interrupt()
		_, err := opened.Retain(t.Context(), "pvc-1")
		return err
	}, func(t *testing.T, w *world) {
		place, err := w.open(t).Retain(t.Context(), "pvc-1")
		must(t, err)
		if want := nfstest.Share + "/a-data-1 of server " + nfstest.Host; place != want {
			t.Errorf("it is said to lie in %q, not %q", place, want)
		}
		held, err := w.open(t).List(t.Context())
		must(t, err)
		if len(held) != 1 || !held[0].Retained {
			t.Errorf("it is listed as %v", held)
		}
		w.mustHave(t, "a-data-1/file", directories+"/a-data-1")
	})
}
