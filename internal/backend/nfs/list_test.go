package nfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// record puts records of volumes on the share, without the volumes.
func (w *world) record(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		w.put(t, recordPath(id), fmt.Sprintf(`{"id": %q, "cluster": %q, "backend": "share",
			"claim": {"namespace": "a", "name": "data", "uid": %q}, "directory": %q}`, id, thisCluster, strings.TrimPrefix(id, "pvc-"), id))
	}
}

func idOf(number int) string { return fmt.Sprintf("pvc-%06d", number) }

// readPages reads pages to the end, calls between after each, and returns the ids.
func readPages(t *testing.T, opened *nfsBackend, between func(page int)) (ids []string, pages int) {
	t.Helper()
	const most = 1000
	after := ""
	for page := range most {
		held, next, err := opened.ListAfter(t.Context(), after)
		must(t, err)
		for _, volume := range held {
			ids = append(ids, volume.ID)
		}
		if next == "" {
			return ids, page + 1
		}
		if next <= after {
			t.Fatalf("after %s it goes on with %s", after, next)
		}
		after = next
		between(page)
	}
	t.Fatalf("there is no end after %s", after)
	return nil, 0
}

func TestManyRecordsAreListedInPages(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	var all []string
	for i := range 100 {
		all = append(all, idOf(i))
	}
	w.record(t, all...)
	opened.share.Slice = 0
	w.proxy.Plan(atMost(50))

	ids, pages := readPages(t, opened, func(int) { w.proxy.Plan(atMost(50)) })

	if !slices.Equal(ids, all) || pages < 10 {
		t.Errorf("%d pages list %v", pages, ids)
	}
}

func TestWhatStaysIsOnAPageWhateverComesAndGoesBetweenThem(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	opened.share.Slice = 0
	var stay []string
	for i := range 40 {
		w.record(t, idOf(10*i))
		if i%3 == 0 {
			stay = append(stay, idOf(10*i))
		}
	}

	ids, _ := readPages(t, opened, func(page int) {
		if page >= 40 {
			return
		}
		if page%3 != 0 {
			_ = os.Remove(filepath.Join(w.folder, recordPath(idOf(10*page))))
		}
		w.record(t, idOf(10*page+5), idOf(10*(40-page)-5))
	})

	for _, id := range stay {
		if !slices.Contains(ids, id) {
			t.Errorf("%s is on no page", id)
		}
	}
	if sorted := slices.Clone(ids); !slices.IsSorted(ids) || len(slices.Compact(sorted)) != len(ids) {
		t.Errorf("the pages list %v", ids)
	}
}

func TestSnapshotsAreListedAfterTheVolumes(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t)
	opened.share.Slice = 0
	w.record(t, idOf(1), idOf(2))
	var all []backend.Held
	for _, owner := range []string{"a", "b", "c"} {
		cluster := thisCluster
		if owner == "b" {
			cluster = "another"
		}
		w.put(t, ".stowage/snapshots/snapshot-"+owner+".json", fmt.Sprintf(`{"id": "snapshot-%s", "cluster": %q, "backend": "share", "snapshot": %q,
			"volume": "pvc-000001", "claim": {"namespace": "a", "name": "data", "uid": "1"}, "retained": %v}`, owner, cluster, owner, owner == "c"))
	}
	for after := ""; ; {
		held, next, err := opened.ListAfter(t.Context(), after)
		must(t, err)
		all = append(all, held...)
		if after = next; after == "" {
			break
		}
	}
	claim := stowagev1alpha1.ClaimReference{Namespace: "a", Name: "data", UID: "1"}
	want := []backend.Held{{ID: "snapshot-a", Claim: claim, Snapshot: "a"}, {ID: "snapshot-c", Claim: claim, Snapshot: "c", Retained: true}}
	if len(all) != 4 || !slices.Equal(all[2:], want) {
		t.Errorf("it lists %v", all)
	}
}

func TestAnInvalidRecordDoesNotStopAListing(t *testing.T) {
	w := newWorld(t)
	w.record(t, idOf(1), idOf(9))
	w.put(t, recordPath(idOf(2)), strings.Repeat("[", 10*maxRecord))
	w.put(t, recordPath(idOf(3))+"/in/it", "data")
	must(t, os.Symlink("/etc/passwd", filepath.Join(w.folder, recordPath(idOf(4)))))
	w.put(t, recordPath(idOf(5)), "")
	held, err := w.open(t).List(t.Context())
	if len(held) != 2 || err != nil || held[1] != (backend.Held{ID: idOf(9), Claim: held[1].Claim}) {
		t.Errorf("it lists %v, %v", held, err)
	}
}
