package csi_test

import (
	"maps"
	"math"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// roomyWorld is a driver in three zones that reports its room.
func roomyWorld(t *testing.T) *world {
	t.Helper()
	w := zonedWorld(t)
	w.abilities = append(w.abilities, csispec.ControllerServiceCapability_RPC_GET_CAPACITY)
	w.room = &csispec.GetCapacityResponse{AvailableCapacity: 1 << 30}
	return w
}

func (w *world) places(t *testing.T) []map[string]string {
	t.Helper()
	topologies, err := w.Backend.(backend.TopologyReporter).CapacityTopologies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return topologies
}

func (w *world) capacityOf(t *testing.T, zone string) (backend.ClassCapacity, error) {
	t.Helper()
	request := backend.CapacityRequest{Class: "gold", Parameters: map[string]string{"tier": "gold", "pool": "theirs"}, Topology: map[string]string{zoneKey: zone}}
	return w.Backend.(backend.ClassCapacityReporter).CapacityOf(t.Context(), request)
}

func TestRoomIsReportedForEachTopologyOfTheNodes(t *testing.T) {
	w := roomyWorld(t)
	var zones []string
	for _, topology := range w.places(t) {
		if len(topology) != 1 {
			t.Errorf("there is %v", topology)
		}
		zones = append(zones, topology[zoneKey])
	}
	if strings.Join(zones, " ") != "a b c" {
		t.Errorf("there are %v", zones)
	}
}

func TestRoomOfADriverWithoutTopologyIsReportedOnce(t *testing.T) {
	w := roomyWorld(t)
	w.topology = false
	if all := w.places(t); len(all) != 1 || len(all[0]) != 0 {
		t.Errorf("there are %v", all)
	}
}

func TestNoRoomIsReportedOfADriverThatDoesNotClaimTo(t *testing.T) {
	w := zonedWorld(t)
	if all := w.places(t); len(all) != 0 {
		t.Errorf("there are %v", all)
	}
	if _, err := w.capacityOf(t, "a"); backend.KindOf(err) != backend.Invalid || len(did[*csispec.GetCapacityRequest](w.driver)) > 0 {
		t.Errorf("it has %v", err)
	}
}

func TestRoomIsThatForTheClassInTheTopology(t *testing.T) {
	w := roomyWorld(t)
	w.object.Spec.CSI.Parameters = map[string]stowagev1alpha1.CSIParameter{"pool": "ours"}
	w.room.MaximumVolumeSize = wrapperspb.Int64(1 << 20)
	w.open(t)
	room, err := w.capacityOf(t, "b")
	if err != nil || room.Available.String() != "1Gi" || room.MaximumVolumeSize.String() != "1Mi" {
		t.Fatalf("it has %v, %v", room, err)
	}
	asked := did[*csispec.GetCapacityRequest](w.driver)[0]
	if !maps.Equal(asked.GetParameters(), map[string]string{"tier": "gold", "pool": "ours"}) ||
		!maps.Equal(asked.GetAccessibleTopology().GetSegments(), map[string]string{zoneKey: "b"}) {
		t.Errorf("it asked %v", asked)
	}
}

func TestAnAnswerAboutRoomIsChecked(t *testing.T) {
	for name, test := range map[string]struct {
		room *csispec.GetCapacityResponse
		err  error
		want string
	}{
		"nothing":            {room: &csispec.GetCapacityResponse{}, want: "0"},
		"all that can be":    {room: &csispec.GetCapacityResponse{AvailableCapacity: math.MaxInt64}, want: "9223372036854775807"},
		"less than nothing":  {room: &csispec.GetCapacityResponse{AvailableCapacity: -1}},
		"negative volumes":   {room: &csispec.GetCapacityResponse{AvailableCapacity: 1, MaximumVolumeSize: wrapperspb.Int64(-1)}},
		"a driver that errs": {err: status.Error(codes.Internal, "the array is on fire")},
	} {
		t.Run(name, func(t *testing.T) {
			w := roomyWorld(t)
			w.room = test.room
			w.before = func(request any) error {
				if _, is := request.(*csispec.GetCapacityRequest); is {
					return test.err
				}
				return nil
			}
			room, err := w.capacityOf(t, "a")
			if test.want == "" && backend.KindOf(err) == backend.Unavailable {
				return
			}
			if err != nil || room.Available.String() != test.want || room.MaximumVolumeSize != nil {
				t.Errorf("it has %v, %v", room, err)
			}
		})
	}
}
