package nfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/recycle"
)

// atMost lets so many calls through: an operation that needs more runs out of time.
func atMost(calls int) func(nfstest.Call) nfstest.Fault {
	return func(call nfstest.Call) nfstest.Fault {
		if call.Number > calls {
			return nfstest.DropCall
		}
		return nfstest.None
	}
}

// squashed is a world with a server that squashes root, and with operations that run out of time
// after some calls.
func squashed(t *testing.T) *world {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: the server gives files away")
	}
	w := newWorld(t)
	w.server.Squash.Store(true)
	w.spec.Access.UID, w.spec.Access.GID = nfstest.Anonymous, nfstest.Anonymous
	return w
}

// untilDone repeats a call with operations that run out of time, each time as another
// process, and returns what the calls before the last said.
func (w *world) untilDone(t *testing.T, call func(kind *Kind) error) []string {
	t.Helper()
	const most, calls = 3000, 150
	var said []string
	for range most {
		w.proxy.Plan(atMost(calls))
		err := call(newKind(t, thisCluster, ""))
		if err == nil {
			return said
		}
		if !errors.Is(err, backend.InProgress) {
			t.Fatalf("after %d calls it ended with %v", len(said), err)
		}
		said = append(said, err.Error())
	}
	t.Fatalf("it doesn't end: %s", said[most-1])
	return nil
}

// plant makes a tree of directories, with a file in each.
func (w *world) plant(t *testing.T, top string, directories int) {
	t.Helper()
	for i := range directories {
		w.put(t, fmt.Sprintf("%s/%d/%d/file", top, i%7, i), "data")
	}
	must(t, os.Chown(filepath.Join(w.folder, top), nfstest.Anonymous, nfstest.Anonymous))
}

func TestAVolumeWithAnInspectionOfManyCallsIsDeleted(t *testing.T) {
	w := squashed(t)
	mustProvision(t, w.open(t), requestFor("a", "data", "1"))
	w.plant(t, "a-data-1", 200)

	said := w.untilDone(t, func(kind *Kind) error {
		opened := w.openAs(t, kind)
		opened.share.Slice = 0
		return opened.Delete(t.Context(), "pvc-1")
	})

	w.mustLack(t, "a-data-1", recordPath("pvc-1"), deleting+"/pvc-1", inspectionPath("pvc-1"))
	for _, part := range []string{"200 or more files and directories", "removing goes on"} {
		if !strings.Contains(strings.Join(said, "\n"), part) {
			t.Errorf("no call said %q", part)
		}
	}
}

func TestADirectoryWithAnInspectionOfManyCallsIsRecycled(t *testing.T) {
	w := squashed(t)
	w.plant(t, "data", 100)
	w.plant(t, "more", 100)

	said := w.untilDone(t, func(kind *Kind) error { return kind.recycle(t.Context(), w.recycling("one"), 0) })

	w.mustBeEmpty(t)
	if !strings.Contains(strings.Join(said, "\n"), "200 or more files and directories") {
		t.Errorf("no call said how far it is: %s", said[0])
	}
}

func TestATenantsEntryInPlaceOfTheProgressBlocksNothing(t *testing.T) {
	forged := `{"of": "claim-1", "written": "2100-01-01T00:00:00Z", "done": true}`
	for name, put := range map[string]func(t *testing.T, w *world, path string){
		"a directory": func(t *testing.T, w *world, path string) { w.put(t, path+"/in/it", "data") },
		"a link": func(t *testing.T, w *world, path string) {
			must(t, os.Symlink("/etc/passwd", filepath.Join(w.folder, path)))
		},
		"a large file":      func(t *testing.T, w *world, path string) { w.put(t, path, strings.Repeat("[", 10*(128<<10))) },
		"nothing":           func(t *testing.T, w *world, path string) { w.put(t, path, "") },
		"what says nothing": func(t *testing.T, w *world, path string) { w.put(t, path, forged) },
	} {
		t.Run(name, func(t *testing.T) {
			w := squashed(t)
			w.plant(t, "data", 10)
			must(t, os.Mkdir(filepath.Join(w.folder, recycle.Folder), 0o777))
			put(t, w, recycle.Folder+"/"+recycle.InspectionFile)
			said := w.untilDone(t, func(kind *Kind) error { return kind.recycle(t.Context(), w.recycling("one"), 0) })
			w.mustBeEmpty(t)
			if !strings.Contains(said[0], "inspected") {
				t.Errorf("first it said: %s", said[0])
			}
		})
	}
}

func TestWithSquashedRootAStaleCallerRemovesNothingOfTheNextClaim(t *testing.T) {
	testLate(t, squashed(t))
}

func TestAnInspectionThatIsNotNeededAnyMoreLeavesNothing(t *testing.T) {
	w := squashed(t)
	mustProvision(t, w.open(t), requestFor("a", "data", "1"))
	w.plant(t, "a-data-1", 10)
	opened := w.open(t)
	opened.share.Slice = 0
	if err := opened.Delete(t.Context(), "pvc-1"); !errors.Is(err, backend.InProgress) {
		t.Fatalf("deleting ended with %v", err)
	}
	w.mustHave(t, inspectionPath("pvc-1"))

	must(t, w.open(t, onDelete(stowagev1alpha1.NFSArchive)).Delete(t.Context(), "pvc-1"))

	w.mustHave(t, archived+"/a_data_pvc-1/0/0/file")
	w.mustLack(t, inspectionPath("pvc-1"))
}
