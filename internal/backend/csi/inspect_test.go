package csi_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

// ControllerGetVolume finds a volume.
func (d *driver) ControllerGetVolume(_ context.Context, request *csispec.ControllerGetVolumeRequest) (*csispec.ControllerGetVolumeResponse, error) {
	if d.volumes[request.GetVolumeId()] == nil {
		return nil, status.Error(codes.NotFound, "there is no such volume")
	}
	return &csispec.ControllerGetVolumeResponse{Volume: &csispec.Volume{VolumeId: request.GetVolumeId()}}, nil
}

// ControllerListVolumeHealth lists one volume on each page.
func (d *driver) ControllerListVolumeHealth(
	_ context.Context, request *csispec.ControllerListVolumeHealthRequest,
) (*csispec.ControllerListVolumeHealthResponse, error) {
	ids := slices.Sorted(maps.Keys(d.ill))
	at, _ := slices.BinarySearch(ids, request.GetStartingToken())
	answer := &csispec.ControllerListVolumeHealthResponse{}
	if at < len(ids) {
		answer.Entries = []*csispec.VolumeHealth{d.ill[ids[at]]}
	}
	if at+1 < len(ids) {
		answer.NextToken = ids[at+1]
	}
	return answer, nil
}

// ControllerGetVolumeHealth says how one volume is.
func (d *driver) ControllerGetVolumeHealth(
	_ context.Context, request *csispec.ControllerGetVolumeHealthRequest,
) (*csispec.ControllerGetVolumeHealthResponse, error) {
	if d.volumes[request.GetVolumeId()] == nil {
		return nil, status.Error(codes.NotFound, "there is no such volume")
	}
	return &csispec.ControllerGetVolumeHealthResponse{VolumeHealth: d.ill[request.GetVolumeId()]}, nil
}

func (w *world) inspect(t *testing.T, ids ...string) (backend.Inspection, error) {
	t.Helper()
	return w.Backend.(backend.Inspector).Inspect(t.Context(), ids)
}

// claiming is a driver with two volumes and these abilities beside the first of its own.
func claiming(t *testing.T, of ...ability) (w *world, there []string) {
	t.Helper()
	w = newWorld(t)
	w.abilities = append(w.abilities[:1:1], of...)
	for _, name := range []string{"1", "2"} {
		made, err := w.Provision(t.Context(), backendtest.Request(name))
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, made.Handle)
	}
	return w, there
}

const (
	lists   = csispec.ControllerServiceCapability_RPC_LIST_VOLUMES
	gets    = csispec.ControllerServiceCapability_RPC_GET_VOLUME
	listsOf = csispec.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH
	getsOf  = csispec.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH
)

func TestADriverSaysWhichVolumesItDoesNotHave(t *testing.T) {
	for name, test := range map[string]struct {
		claims []ability
		finds  bool
	}{
		"by a list":             {[]ability{lists}, true},
		"of each":               {[]ability{gets}, true},
		"by a list and of each": {[]ability{lists, gets}, true},
		"not at all":            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, there := claiming(t, test.claims...)
			got, err := w.inspect(t, there[0], "absent", there[1])
			want := map[string]bool{"absent": true}
			if !test.finds {
				want = nil
			}
			if err != nil || got.FindsMissing != test.finds || !maps.Equal(got.Missing, want) {
				t.Errorf("it finds %+v, %v", got, err)
			}
			if asked := len(did[*csispec.ControllerGetVolumeRequest](w.driver)); slices.Contains(test.claims, lists) && asked > 1 {
				t.Errorf("it was asked for %d volumes one by one", asked)
			}
		})
	}
}

func TestAVolumeThatAListLacksAndTheDriverKnowsIsThere(t *testing.T) {
	w, there := claiming(t, lists, gets)
	w.mu.Lock()
	w.unlisted = there[0]
	w.mu.Unlock()
	if got, err := w.inspect(t, there...); err != nil || len(got.Missing) > 0 {
		t.Errorf("it finds %+v, %v", got, err)
	}
}

func TestNothingIsMissingWhereAListFailsOrNeverEnds(t *testing.T) {
	w, there := claiming(t, lists)
	w.mu.Lock()
	w.endless = true
	w.mu.Unlock()
	if got, err := w.inspect(t, there...); err != nil || len(got.Missing) > 0 {
		t.Errorf("it finds %+v, %v", got, err)
	}
	w.answersTo("ListVolumes", status.Error(codes.Internal, "no"))
	if got, err := w.inspect(t, there...); !errors.Is(err, backend.Unavailable) || len(got.Missing) > 0 {
		t.Errorf("it finds %+v, %v", got, err)
	}
	w, there = claiming(t, gets)
	w.answersTo("ControllerGetVolume", status.Error(codes.Internal, "no"))
	if got, err := w.inspect(t, there...); !errors.Is(err, backend.Unavailable) || len(got.Missing) > 0 {
		t.Errorf("it finds %+v, %v", got, err)
	}
}

func TestADriverSaysWhichVolumesAreNotWell(t *testing.T) {
	for name, claims := range map[string][]ability{"by a list": {listsOf, getsOf}, "of each": {getsOf}} {
		t.Run(name, func(t *testing.T) {
			w, there := claiming(t, claims...)
			problem := func(id, reason, message string) *csispec.VolumeHealth {
				return &csispec.VolumeHealth{VolumeId: id, HealthStatuses: []*csispec.VolumeHealth_VolumeHealthEntry{
					{Status: csispec.VolumeHealthErrorType_INACCESSIBLE, Reason: reason, Message: message},
					{Status: csispec.VolumeHealthErrorType_DEGRADED, Reason: "Slow"},
				}}
			}
			w.mu.Lock()
			w.ill = map[string]*csispec.VolumeHealth{there[1]: problem(there[1], "Gone", "its array is off"), "another": problem("another", "Gone", "")}
			w.mu.Unlock()
			got, err := w.inspect(t, there...)
			want := map[string]string{there[0]: "", there[1]: "DEGRADED (Slow); INACCESSIBLE (Gone): its array is off"}
			if err != nil || !maps.Equal(got.Health, want) || got.FindsMissing {
				t.Errorf("it says %+v, %v", got, err)
			}
		})
	}
}

func TestWhatADriverSaysOfAVolumeIsBounded(t *testing.T) {
	w, there := claiming(t, listsOf, getsOf)
	health := &csispec.VolumeHealth{VolumeId: there[0]}
	for range 1000 {
		health.HealthStatuses = append(health.HealthStatuses, &csispec.VolumeHealth_VolumeHealthEntry{Message: strings.Repeat("x", 1000)})
	}
	for _, entry := range health.GetHealthStatuses() {
		entry.Reason = strings.Repeat("é", 100)
	}
	w.mu.Lock()
	w.ill = map[string]*csispec.VolumeHealth{there[0]: health}
	w.mu.Unlock()
	got, err := w.inspect(t, there[0])
	if err != nil || got.Health[there[0]] == "" || len(got.Health[there[0]]) > 400 {
		t.Errorf("it says %d bytes, %v", len(got.Health[there[0]]), err)
	}
}
