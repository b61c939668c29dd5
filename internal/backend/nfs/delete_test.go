package nfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/naming"
)

func TestADeletedVolumeTakesItsFilesWithIt(t *testing.T) {
	w := newWorld(t)
	opened, request := w.open(t), requestFor("team-a", "data", "1")
	mustProvision(t, opened, request)
	w.put(t, "team-a-data-1/deep/er/file", "data")
	must(t, os.Symlink("../../canary", filepath.Join(w.folder, "team-a-data-1", "out")))
	must(t, opened.Delete(t.Context(), request.ID))
	w.mustLack(t, "team-a-data-1", recordPath(request.ID), directories+"/team-a-data-1", deleting+"/"+request.ID)
}

func TestAnArchivedVolumeIsKeptUnderANameOfItsOwn(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t, template("{{namespace}}/{{name}}"), onDelete(stowagev1alpha1.NFSArchive))
	for uid, namespace := range map[string]string{"1": "a", "2": "b"} {
		request := requestFor(namespace, "data", uid)
		mustProvision(t, opened, request)
		w.put(t, namespace+"/data/file", "of "+namespace)
		must(t, opened.Delete(t.Context(), request.ID))
		must(t, opened.Delete(t.Context(), request.ID))
	}
	w.mustHave(t, archived+"/a_data_pvc-1/file", archived+"/b_data_pvc-2/file", archived+"/a_data_pvc-1.json")
	w.mustLack(t, "a/data", recordPath("pvc-1"))
	mustProvision(t, opened, requestFor("a", "data", "3"))
}

func TestARetainedVolumeKeepsItsDirectory(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t, template("{{namespace}}-{{name}}"), onDelete(stowagev1alpha1.NFSRetain))
	mustProvision(t, opened, requestFor("a", "data", "1"))
	w.put(t, "a-data/file", "data")
	must(t, opened.Delete(t.Context(), "pvc-1"))
	must(t, opened.Delete(t.Context(), "pvc-1"))
	w.mustHave(t, "a-data/file", retained+"/pvc-1.json")
	if held, err := opened.List(t.Context()); len(held) > 0 || err != nil {
		t.Errorf("it is still listed: %v, %v", held, err)
	}
	if _, err := opened.Provision(t.Context(), requestFor("a", "data", "2")); !errors.Is(err, backend.Conflict) {
		t.Errorf("another claim got the directory: %v", err)
	}
}

func TestADeletionEndsAsItBegan(t *testing.T) {
	w := newWorld(t)
	mustProvision(t, w.open(t), requestFor("a", "data", "1"))
	must(t, os.Chmod(w.folder, 0o755))
	archiving := w.open(t, onDelete(stowagev1alpha1.NFSArchive))
	w.proxy.Plan(faultAt(procRename, 2, dropCall)) // the first one is the record's
	if err := archiving.Delete(t.Context(), "pvc-1"); err == nil {
		t.Fatal("the deletion went through")
	}
	w.proxy.Plan(nil)
	must(t, w.open(t, onDelete(stowagev1alpha1.NFSDelete)).Delete(t.Context(), "pvc-1"))
	w.mustHave(t, archived+"/a_data_pvc-1")
}

func TestAVolumeBeingDeletedIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	mustProvision(t, opened, requestFor("a", "data", "1"))
	w.proxy.Plan(faultAt(procRename, 2, dropCall))
	if err := opened.Delete(t.Context(), "pvc-1"); err == nil {
		t.Fatal("the deletion went through")
	}
	w.proxy.Plan(nil)
	if _, err := opened.Provision(t.Context(), requestFor("a", "data", "1")); !errors.Is(err, backend.Conflict) {
		t.Errorf("provisioning ended with %v", err)
	}
	must(t, opened.Delete(t.Context(), "pvc-1"))
}

func TestWhatTakesTheNameOfADirectoryBeingRemovedStays(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	mustProvision(t, opened, requestFor("a", "data", "1"))
	w.put(t, "a-data-1/file", "data")
	w.proxy.Plan(after(procRename, 2)) // the first one is the record's
	if err := opened.Delete(t.Context(), "pvc-1"); err == nil {
		t.Fatal("the deletion went through")
	}
	w.proxy.Plan(nil)
	w.mustLack(t, "a-data-1")
	w.put(t, "a-data-1/others", "data")
	must(t, opened.Delete(t.Context(), "pvc-1"))
	w.mustHave(t, "a-data-1/others")
	w.mustLack(t, deleting+"/pvc-1", recordPath("pvc-1"))
}

func TestARecordThatLeadsElsewhereRemovesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		change string
		kind   backend.ErrorKind
	}{
		"to the canary":          {`"directory": "../canary"`, backend.Invalid},
		"to a path":              {`"directory": "/etc"`, backend.Invalid},
		"to the whole share":     {`"directory": ""`, backend.Invalid},
		"to what is ours":        {`"directory": ".stowage"`, backend.Invalid},
		"to a neighbour":         {`"directory": "b-data-2"`, ""},
		"to an unowned folder":   {`"directory": "photos"`, backend.Conflict},
		"behind a link":          {`"directory": "link/data"`, backend.Conflict},
		"to a link":              {`"directory": "link"`, backend.Conflict},
		"above a neighbour":      {`"directory": "nested"`, backend.Conflict},
		"with another cluster's": {`"directory": "a-data-1", "cluster": "cluster-2"`, backend.Conflict},
		"with another backend's": {`"directory": "a-data-1", "backend": "other"`, backend.Conflict},
		"with another claim's":   {`"directory": "a-data-1", "claim": {"uid": "2"}`, backend.Conflict},
		"with another id":        {`"directory": "a-data-1", "id": "pvc-2"`, backend.Conflict},
		"to nowhere":             {`no JSON`, backend.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			opened := w.open(t)
			for uid, namespace := range map[string]string{"1": "a", "2": "b"} {
				mustProvision(t, opened, requestFor(namespace, "data", uid))
				w.put(t, namespace+"-data-"+uid+"/file", "data")
			}
			mustProvision(t, w.open(t, template("nested/{{uid}}")), requestFor("c", "data", "3"))
			w.put(t, "photos/cat", "data")
			must(t, os.Symlink("../canary", filepath.Join(w.folder, "link")))
			w.put(t, recordPath("pvc-1"), forged(test.change))

			err := opened.Delete(t.Context(), "pvc-1")

			if backend.KindOf(err) != test.kind {
				t.Errorf("deleting ended with %v", err)
			}
			w.mustHave(t, "a-data-1/file", "b-data-2/file", "nested/3", "photos/cat", "link", recordPath("pvc-2"), recordPath("pvc-3"))
		})
	}
}

func TestAnIdThatIsNoneRemovesNothing(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	mustProvision(t, opened, backendtest.Request("1"))
	for _, id := range []string{"", ".", "..", "pvc-", "../../canary", "pvc-1/../pvc-1", "pvc-1\n", "*", "pvc-" + strings.Repeat("1", 100)} {
		if err := opened.Delete(t.Context(), id); !errors.Is(err, backend.Conflict) {
			t.Errorf("deleting %q ended with %v", id, err)
		}
	}
	w.mustHave(t, "default-claim-1-1", recordPath("pvc-1"))
}

func TestADirectoryReplacedByALinkIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	mustProvision(t, opened, requestFor("a", "data", "1"))
	must(t, os.Remove(filepath.Join(w.folder, "a-data-1")), os.Symlink("../canary", filepath.Join(w.folder, "a-data-1")))
	if err := opened.Delete(t.Context(), "pvc-1"); !errors.Is(err, backend.Conflict) {
		t.Errorf("deleting ended with %v", err)
	}
	w.mustHave(t, "a-data-1")
}

func TestAVolumeWithManyFilesIsRemovedInSlices(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	mustProvision(t, opened, requestFor("a", "data", "1"))
	var files []string
	for i := range 200 {
		files = append(files, fmt.Sprintf("a-data-1/%d/file", i))
		w.put(t, files[i], "data")
	}
	opened.share.Slice = 5 * time.Millisecond
	slices := 0
	deadline := time.Now().Add(patience)
	for err := backend.InProgress.Errorf("not begun"); err != nil; slices++ {
		if err = opened.Delete(t.Context(), "pvc-1"); err != nil && !errors.Is(err, backend.InProgress) || time.Now().After(deadline) {
			t.Fatalf("deleting ended with %v", err)
		}
		if w.has("a-data-1") {
			// A slow machine's slice ends before the volume is renamed.
			w.mustHave(t, files...)
		}
	}
	w.mustLack(t, "a-data-1")
	if slices < 2 {
		t.Skip("this machine removes all of it in one slice")
	}
}

func TestOnlyOwnVolumesAreListed(t *testing.T) {
	w := newWorld(t)
	mustProvision(t, w.open(t), requestFor("a", "data", "1"))
	mustProvision(t, w.openAs(t, newKind(t, otherCluster, "")), requestFor("a", "data", "2"))
	w.put(t, recordPath("pvc-3"), "no JSON")
	held, err := w.open(t).List(t.Context())
	if len(held) != 1 || err != nil || held[0].ID != "pvc-1" || held[0].Claim.Name != "data" {
		t.Errorf("it lists %v, %v", held, err)
	}
}

// forged is a record of pvc-1 with a change: of two values, JSON takes the last.
func forged(change string) string {
	if change == "no JSON" {
		return change
	}
	return `{"id": "pvc-1", "cluster": "cluster-1", "backend": "share",
		"claim": {"namespace": "a", "name": "data", "uid": "1"}, ` + change + `}`
}

func TestAnArchivesNameFitsAFileSystem(t *testing.T) {
	volume := record{Owner: backend.Owner{ID: "pvc-" + strings.Repeat("0", 36) + "-12"}}
	volume.Claim.Namespace, volume.Claim.Name = strings.Repeat("a", 63), strings.Repeat("b", 253)
	if name := archiveName(volume) + ".json"; len(name) != naming.MaxPart || !strings.HasSuffix(name, volume.ID+".json") {
		t.Errorf("it is %s, of %d characters", name, len(name))
	}
}
