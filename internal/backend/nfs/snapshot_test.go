package nfs

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// data is the directory of the volume of claim 1, in the world's share.
const data = "default-claim-1-1"

// withFile is a share with one volume, which has a file.
func withFile(t *testing.T) (*world, *nfsBackend) {
	t.Helper()
	w := newWorld(t)
	opened := w.open(t)
	mustProvision(t, opened, backendtest.Request("1"))
	w.put(t, data+"/state", "before")
	return w, opened
}

func ofVolume(uid string) backend.SnapshotRequest {
	return backend.SnapshotRequest{ID: "snapshot-a", Owner: "a", Namespace: "default", Volume: backendtest.Request(uid).ID}
}

func mustSnapshot(t *testing.T, on backend.Snapshotter) *backend.Snapshot {
	t.Helper()
	made, err := on.CreateSnapshot(t.Context(), ofVolume("1"))
	must(t, err)
	return made
}

func restoredFrom(handle string) backend.Request {
	request := backendtest.Request("2")
	request.Source = &backend.Source{Snapshot: handle}
	return request
}

func TestWhatIsRestoredIsWhatTheVolumeHad(t *testing.T) {
	w, opened := withFile(t)
	made := mustSnapshot(t, opened)
	w.put(t, data+"/state", "after")
	must(t, opened.Delete(t.Context(), backendtest.Request("1").ID))

	mustProvision(t, opened, restoredFrom(made.Handle))

	content, err := os.ReadFile(w.folder + "/default-claim-2-2/state")
	if string(content) != "before" || err != nil {
		t.Errorf("it has %q, %v", content, err)
	}
	must(t, opened.DeleteSnapshot(t.Context(), made.Handle))
	w.mustHave(t, "default-claim-2-2/state")
	w.mustLack(t, ".stowage/snapshots/snapshot-a", ".stowage/snapshots/snapshot-a.json", ".stowage/snapshots/snapshot-a.copy", ".stowage/restoring/"+backendtest.Request("2").ID)
	mustProvision(t, opened, restoredFrom(made.Handle)) // a repeat, after the snapshot is gone
}

func TestOnAFullShareNoCopyIsCompleteBeforeThereIsRoom(t *testing.T) {
	const mebibyte = 1 << 20
	w := newWorld(t)
	mounttest.Tmpfs(t, w.folder) // of 64 MiB
	opened := w.open(t)
	mustProvision(t, opened, backendtest.Request("1"))
	content := strings.Repeat("data", 12*mebibyte/4)
	w.put(t, data+"/state", content)

	whileFull := func(call func() error, copied string) {
		t.Helper()
		w.put(t, "filler", strings.Repeat("x", 45*mebibyte))
		if err := call(); !errors.Is(err, backend.Exhausted) || !strings.Contains(err.Error(), "is full: make room") {
			t.Errorf("it ends with %v", err)
		}
		w.mustLack(t, copied)
		must(t, os.Remove(w.folder+"/filler"))
		must(t, call())
		if got, err := os.ReadFile(filepath.Join(w.folder, copied, "state")); string(got) != content || err != nil {
			t.Errorf("%s has %d bytes, %v", copied, len(got), err)
		}
	}
	var made *backend.Snapshot
	whileFull(func() (err error) { made, err = opened.CreateSnapshot(t.Context(), ofVolume("1")); return err }, ".stowage/snapshots/snapshot-a")
	must(t, os.Remove(filepath.Join(w.folder, data, "state")))
	whileFull(func() error { _, err := opened.Provision(t.Context(), restoredFrom(made.Handle)); return err }, "default-claim-2-2")
}

func TestASnapshotIsRestoredToTheNamespaceThatMayHaveIt(t *testing.T) {
	for name, of := range map[string]backend.Source{
		"that its own lets":                           {Namespace: "default"},
		"that an administrator lets":                  {Given: true},
		"that one lets that an administrator gave it": {Given: true, Namespace: "between"},
	} {
		t.Run(name, func(t *testing.T) {
			w, opened := withFile(t)
			of.Snapshot = mustSnapshot(t, opened).Handle
			wanted := restoredFrom(of.Snapshot)
			wanted.Source, wanted.Claim.Namespace = &of, "other"

			_, err := inSlices(opened).Provision(t.Context(), wanted)
			expectUnfinished(t, err)
			opened.snapshots.Slice = time.Minute
			mustProvision(t, opened, wanted)

			w.mustHaveContent(t, "other-claim-2-2/state", "before")
		})
	}
}

// inSlices has every call stop after its first step.
func inSlices(opened *nfsBackend) *nfsBackend {
	opened.snapshots.Slice = -time.Second
	return opened
}

func TestACopyTakesAsManyCallsAsItNeedsAndHasItsNameAtTheEnd(t *testing.T) {
	w, opened := withFile(t)
	for _, name := range []string{"a/1", "a/2", "b/3"} {
		w.put(t, data+"/"+name, name)
	}
	calls := 0
	for err := error(backend.InProgress); err != nil; calls++ {
		if _, err = inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1")); err != nil {
			expectUnfinished(t, err)
			w.mustLack(t, ".stowage/snapshots/snapshot-a")
		}
	}
	for err := error(backend.InProgress); err != nil; calls++ {
		if _, err = opened.Provision(t.Context(), restoredFrom("snapshot-a")); err != nil {
			expectUnfinished(t, err)
		}
	}
	w.mustHave(t, "default-claim-2-2/a/2", "default-claim-2-2/b/3")
	if calls < 10 {
		t.Errorf("it took %d calls", calls)
	}
}

func expectUnfinished(t *testing.T, err error) {
	t.Helper()
	if !backend.Unfinished(err) {
		t.Fatal(err)
	}
}

func TestAnotherProcessGoesOnWithTheCopy(t *testing.T) {
	w, opened := withFile(t)
	for _, name := range []string{"a/1", "a/2", "b/3"} {
		w.put(t, data+"/"+name, name)
	}
	for range 3 {
		_, err := inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1"))
		expectUnfinished(t, err)
	}
	complete := w.filesBelow(t, ".stowage/snapshots/snapshot-a.copy")
	maps.DeleteFunc(complete, func(_ uint64, path string) bool {
		_, name, _ := strings.Cut(strings.TrimPrefix(path, w.folder+"/.stowage/snapshots/snapshot-a.copy/"), "/")
		source, copied := fileAt(t, w.folder+"/"+data+"/"+name), fileAt(t, path)
		return !source.ModTime().Equal(copied.ModTime()) // the one that it was at
	})
	if len(complete) == 0 {
		t.Fatal("no file is complete")
	}

	made := mustSnapshot(t, w.openAs(t, newKind(t, thisCluster, "")))

	w.mustHave(t, ".stowage/snapshots/"+made.Handle+"/state", ".stowage/snapshots/"+made.Handle+"/a/1", ".stowage/snapshots/"+made.Handle+"/a/2",
		".stowage/snapshots/"+made.Handle+"/b/3")
	w.mustLack(t, ".stowage/snapshots/"+made.Handle+".copy")
	for number := range w.filesBelow(t, ".stowage/snapshots/"+made.Handle) {
		delete(complete, number)
	}
	if len(complete) > 0 {
		t.Errorf("these files were copied once more: %v", complete)
	}
	// The one that was overtaken finds it made.
	if again := mustSnapshot(t, opened); !again.Created.Equal(made.Created) {
		t.Errorf("it is of %s, then of %s", made.Created, again.Created)
	}
}

func TestAProcessThatWasOvertakenCompletesNothingByItself(t *testing.T) {
	w, opened := withFile(t)
	w.put(t, data+"/other", "file")
	for range 2 {
		_, err := inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1"))
		expectUnfinished(t, err)
	}
	_, err := inSlices(w.openAs(t, newKind(t, thisCluster, ""))).CreateSnapshot(t.Context(), ofVolume("1"))
	expectUnfinished(t, err)

	opened.snapshots.Slice = time.Minute
	_, err = opened.CreateSnapshot(t.Context(), ofVolume("1"))

	if err == nil {
		t.Error("it completed a copy that another one took files from")
	}
	made := mustSnapshot(t, opened)
	w.mustHave(t, ".stowage/snapshots/"+made.Handle+"/state", ".stowage/snapshots/"+made.Handle+"/other")
	w.mustLack(t, ".stowage/snapshots/"+made.Handle+".copy")
}

func TestACopyTakesOverNothingOfAnotherSource(t *testing.T) {
	w, opened := withFile(t)
	_, err := inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1"))
	expectUnfinished(t, err)
	attempts, err := filepath.Glob(w.folder + "/.stowage/snapshots/snapshot-a.copy/*")
	must(t, err)
	foreign := filepath.Join(filepath.Dir(attempts[0]), "0123456789abcdef-OTHER.earlier")
	must(t, os.Rename(attempts[0], foreign))
	before := w.filesBelow(t, ".stowage/snapshots/snapshot-a.copy")
	for _, path := range before { // no other file gets its number
		must(t, os.Link(path, filepath.Join(t.TempDir(), "kept")))
	}

	made := mustSnapshot(t, w.openAs(t, newKind(t, thisCluster, "")))

	for number, path := range w.filesBelow(t, ".stowage/snapshots/"+made.Handle) {
		if before[number] != "" {
			t.Errorf("it took over %s", path)
		}
	}
	w.mustHave(t, ".stowage/snapshots/"+made.Handle+"/state")
}

func fileAt(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info
}

// filesBelow returns the files that aren't empty below a folder of the share, by their inode numbers.
func (w *world) filesBelow(t *testing.T, folder string) map[uint64]string {
	t.Helper()
	found := map[uint64]string{}
	must(t, filepath.WalkDir(w.folder+"/"+folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Size() > 0 {
			found[info.Sys().(*syscall.Stat_t).Ino] = path
		}
		return err
	}))
	return found
}

func TestWhatIsLeftOfARestoreGoesWithItsVolume(t *testing.T) {
	w, opened := withFile(t)
	made := mustSnapshot(t, opened)
	_, err := inSlices(opened).Provision(t.Context(), restoredFrom(made.Handle))
	expectUnfinished(t, err)
	w.mustHave(t, ".stowage/restoring/"+backendtest.Request("2").ID)
	opened.snapshots.Slice = time.Minute

	must(t, opened.Delete(t.Context(), backendtest.Request("2").ID))

	if w.hasVolume(backendtest.Request("2").ID) {
		t.Error("something is left")
	}
	w.mustHave(t, ".stowage/snapshots/"+made.Handle)
}

func TestADirectoryThatSomeoneMadeIsNotTakenForWhatIsRestored(t *testing.T) {
	w, opened := withFile(t)
	made := mustSnapshot(t, opened)
	_, err := inSlices(opened).Provision(t.Context(), restoredFrom(made.Handle))
	expectUnfinished(t, err)
	must(t, os.Mkdir(filepath.Join(w.folder, "default-claim-2-2"), 0o755))

	_, err = opened.Provision(t.Context(), restoredFrom(made.Handle))

	expectKind(t, err, backend.Conflict, "")
}

func TestASnapshotThatIsImpossibleIsNotBegun(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*backend.SnapshotRequest)
		kind   backend.ErrorKind
	}{
		"with parameters":          {func(request *backend.SnapshotRequest) { request.Parameters = map[string]string{"a": "b"} }, backend.Invalid},
		"of another namespace":     {func(request *backend.SnapshotRequest) { request.Namespace = "other" }, backend.Invalid},
		"of nothing":               {func(request *backend.SnapshotRequest) { request.Volume = backendtest.Request("9").ID }, backend.NotFound},
		"of what is no volume":     {func(request *backend.SnapshotRequest) { request.Volume = "../../etc" }, backend.Conflict},
		"that isn't wanted":        {func(request *backend.SnapshotRequest) { request.Unwanted = true }, backend.NotFound},
		"under a name that is odd": {func(request *backend.SnapshotRequest) { request.Owner, request.ID = "A-B", "snapshot-A-B" }, backend.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			w, opened := withFile(t)
			request := ofVolume("1")
			test.change(&request)
			_, err := opened.CreateSnapshot(t.Context(), request)
			expectKind(t, err, test.kind, "")
			w.mustLack(t, ".stowage/snapshots")
		})
	}
}

func TestAnUnwantedSnapshotIsNotCompleted(t *testing.T) {
	w, opened := withFile(t)
	w.put(t, data+"/other", "file")
	_, err := inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1"))
	expectUnfinished(t, err)
	request := ofVolume("1")
	request.Unwanted = true
	made, err := opened.CreateSnapshot(t.Context(), request)
	if err != nil || made.Ready || made.Handle != request.ID {
		t.Fatalf("it is %+v, %v", made, err)
	}
	opened.snapshots.Slice = time.Minute
	must(t, opened.DeleteSnapshot(t.Context(), made.Handle))
	w.mustLack(t, ".stowage/snapshots/snapshot-a.json", ".stowage/snapshots/snapshot-a.copy")
}

func TestASnapshotOfAVolumeThatGoesLeavesNothing(t *testing.T) {
	w, opened := withFile(t)
	w.put(t, data+"/other", "file")
	_, err := inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1"))
	expectUnfinished(t, err)
	opened.snapshots.Slice = time.Minute
	must(t, opened.Delete(t.Context(), backendtest.Request("1").ID))

	_, err = opened.CreateSnapshot(t.Context(), ofVolume("1"))

	expectKind(t, err, backend.NotFound, "")
	w.mustLack(t, ".stowage/snapshots/snapshot-a.json", ".stowage/snapshots/snapshot-a.copy", ".stowage/snapshots/snapshot-a")
}

func TestASnapshotOfAnotherClusterOrBackendIsLeftAlone(t *testing.T) {
	w, opened := withFile(t)
	mustSnapshot(t, opened)
	record := w.folder + "/.stowage/snapshots/snapshot-a.json"
	content, err := os.ReadFile(record)
	must(t, err)
	for name, text := range map[string]string{
		"another cluster": strings.Replace(string(content), string(thisCluster), string(otherCluster), 1),
		"another backend": strings.Replace(string(content), `"backend": "share"`, `"backend": "other"`, 1),
		"another owner":   strings.Replace(string(content), `"snapshot": "a"`, `"snapshot": "b"`, 1),
		"nonsense":        "{",
		"too much":        strings.Replace(string(content), `"name": "claim-1"`, `"name": "`+strings.Repeat("x", 2000)+`"`, 1),
	} {
		must(t, os.WriteFile(record, []byte(text), 0o600))
		_, create := opened.CreateSnapshot(t.Context(), ofVolume("1"))
		_, find := opened.FindSnapshot(t.Context(), "snapshot-a")
		_, restore := opened.Provision(t.Context(), restoredFrom("snapshot-a"))
		for doing, err := range map[string]error{"making": create, "finding": find, "restoring": restore, "deleting": opened.DeleteSnapshot(t.Context(), "snapshot-a")} {
			if backend.KindOf(err) != backend.Conflict || len(err.Error()) > 500 {
				t.Errorf("%s that of %s: %v", doing, name, err)
			}
		}
		w.mustHave(t, ".stowage/snapshots/snapshot-a/state")
	}
}

func TestARestoreThatIsImpossibleIsNotBegun(t *testing.T) {
	w, opened := withFile(t)
	w.put(t, data+"/other", "file")
	_, err := inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1"))
	expectUnfinished(t, err)
	_, err = opened.Provision(t.Context(), restoredFrom("snapshot-a"))
	expectKind(t, err, backend.Unavailable, "isn't complete yet")
	opened.snapshots.Slice = time.Minute
	mustSnapshot(t, opened)
	elsewhere := restoredFrom("snapshot-a")
	elsewhere.Claim.Namespace = "other"
	forged := restoredFrom("snapshot-a")
	forged.Source.Namespace = "other"
	none := restoredFrom("snapshot-b")
	none.Source.Given = true
	for handle, request := range map[string]backend.Request{"elsewhere": elsewhere, "none that was given": none, "forged": forged, "none": restoredFrom("snapshot-b"), "a volume": restoredFrom(backendtest.Request("1").ID)} {
		_, err := opened.Provision(t.Context(), request)
		if backend.KindOf(err) != backend.Invalid || w.hasVolume(request.ID) {
			t.Errorf("of %s: %v", handle, err)
		}
	}
}

func TestAnEmptyVolumeIsNeverWhatWasRestored(t *testing.T) {
	_, opened := withFile(t)
	made := mustSnapshot(t, opened)
	mustProvision(t, opened, backendtest.Request("2"))
	_, err := opened.Provision(t.Context(), restoredFrom(made.Handle))
	expectKind(t, err, backend.Conflict, "began empty")
}

func expectKind(t *testing.T, err error, kind backend.ErrorKind, text string) {
	t.Helper()
	if backend.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v, of kind %q, not %q with %q", err, backend.KindOf(err), kind, text)
	}
}

func TestWhatIsLeftOfARefusedSnapshotIsRemovedByTheCallsThatFollow(t *testing.T) {
	w, opened := withFile(t)
	for _, name := range []string{"a/1", "a/2", "b/3"} {
		w.put(t, data+"/"+name, name)
	}
	_, err := inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1"))
	expectUnfinished(t, err)
	_, err = opened.CreateSnapshot(t.Context(), ofVolume("1"))
	expectUnfinished(t, err)
	must(t, opened.Delete(t.Context(), backendtest.Request("1").ID))
	for calls := 0; !errors.Is(err, backend.NotFound); calls++ {
		if _, err = opened.CreateSnapshot(t.Context(), ofVolume("1")); calls > 50 || !errors.Is(err, backend.NotFound) && !backend.Unfinished(err) {
			t.Fatal(err)
		}
	}
	w.mustLack(t, ".stowage/snapshots/snapshot-a.json", ".stowage/snapshots/snapshot-a.copy", ".stowage/snapshots/snapshot-a")
}

func TestACopyWhoseAttemptAnotherProcessRemovedIsBegunAgain(t *testing.T) {
	w, opened := withFile(t)
	w.put(t, data+"/other", "file")
	_, err := inSlices(opened).CreateSnapshot(t.Context(), ofVolume("1"))
	expectUnfinished(t, err)
	must(t, os.RemoveAll(w.folder+"/.stowage/snapshots/snapshot-a.copy"))
	opened.snapshots.Slice = time.Minute
	_, _ = opened.CreateSnapshot(t.Context(), ofVolume("1"))

	mustSnapshot(t, opened)

	w.mustHave(t, ".stowage/snapshots/snapshot-a/state", ".stowage/snapshots/snapshot-a/other")
}
