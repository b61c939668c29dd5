package csi_test

import (
	"errors"
	"slices"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

func (w *world) publications(t *testing.T, of ...string) (map[string][]string, error) {
	t.Helper()
	asked := map[string]bool{}
	for _, id := range of {
		asked[id] = true
	}
	return w.Backend.(backend.PublicationLister).Publications(t.Context(), asked)
}

func TestADriverListsTheNodesOfTheVolumesThatAreAskedFor(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for _, name := range []string{"1", "2", "3"} {
		made, err := w.Provision(t.Context(), backendtest.Request(name))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.Handle)
		node := backend.NodeIdentity{Name: "a", DriverID: "id-" + name}
		if _, err := w.Backend.(backend.Attacher).Attach(t.Context(), backend.AttachRequest{ID: made.Handle, Volume: volumeWith(made.Handle), Node: node}); name != "2" && err != nil {
			t.Fatal(err)
		} else if name == "2" {
			_ = w.Backend.(backend.Attacher).Detach(t.Context(), made.Handle, node)
		}
	}
	got, err := w.publications(t, ids[0], ids[1], "absent")
	if err != nil || len(got) != 2 || !slices.Equal(got[ids[0]], []string{"id-1"}) || len(got[ids[1]]) != 0 {
		t.Errorf("it lists %v, %v", got, err)
	}
	if pages := len(did[*csispec.ListVolumesRequest](w.driver)); pages != 3 {
		t.Errorf("three volumes on a page each take %d calls", pages)
	}
}

func TestADriverThatListsNoNodesIsNotAsked(t *testing.T) {
	w := newWorld(t)
	w.abilities = w.abilities[:5]
	if got, err := w.publications(t, "a"); got != nil || err != nil || len(did[*csispec.ListVolumesRequest](w.driver)) > 0 {
		t.Errorf("it lists %v, %v", got, err)
	}
}

func TestAListThatFailsOrNeverEndsIsBounded(t *testing.T) {
	w := newWorld(t)
	w.answersTo("ListVolumes", status.Error(codes.Aborted, "the token is too old"))
	if _, err := w.publications(t, "a"); !errors.Is(err, backend.Unavailable) {
		t.Errorf("it has %v", err)
	}
	w.mu.Lock()
	w.before, w.endless = nil, true
	w.calls = nil
	w.mu.Unlock()
	if got, err := w.publications(t, "a"); err != nil || len(got) != 0 || len(did[*csispec.ListVolumesRequest](w.driver)) != 200 {
		t.Errorf("it lists %v, %v, in %d calls", got, err, len(did[*csispec.ListVolumesRequest](w.driver)))
	}
}
