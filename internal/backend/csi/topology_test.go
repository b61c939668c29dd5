package csi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

// zonedWorld is a driver with two nodes in zone a, and one in each of b and c.
func zonedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.topology = true
	for _, zone := range []string{"b", "a", "c"} {
		w.add("node-"+zone, zone)
	}
	w.add("second-a", "a")
	return w
}

func zones(topologies []*csispec.Topology) (all []string) {
	for _, of := range topologies {
		all = append(all, of.GetSegments()[zoneKey])
	}
	return all
}

func TestAVolumeIsMadeWhereThePodsNodeIs(t *testing.T) {
	w, request := zonedWorld(t), backendtest.Request("1")
	request.Node = &w.nodes[2]
	made, err := w.Provision(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	asked := did[*csispec.CreateVolumeRequest](w.driver)[0].GetAccessibilityRequirements()
	if !slices.Equal(zones(asked.GetRequisite()), []string{"a", "b", "c"}) || !slices.Equal(zones(asked.GetPreferred()), []string{"c", "a", "b"}) {
		t.Errorf("it may be in %v, and preferably in %v", zones(asked.GetRequisite()), zones(asked.GetPreferred()))
	}
	terms := made.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 1 || fmt.Sprint(terms[0].MatchExpressions) != "[{"+zoneKey+" In [c]}]" {
		t.Errorf("it can be reached from %v", terms)
	}
}

func TestVolumesWithoutAPodSpreadOverZones(t *testing.T) {
	w, first := zonedWorld(t), map[string]bool{}
	for uid := range 30 {
		if _, err := w.Provision(t.Context(), backendtest.Request(fmt.Sprint(uid))); err != nil {
			t.Fatal(err)
		}
	}
	for _, asked := range did[*csispec.CreateVolumeRequest](w.driver) {
		first[zones(asked.GetAccessibilityRequirements().GetPreferred())[0]] = true
	}
	if len(first) != 3 {
		t.Errorf("they prefer %v", first)
	}
}

func TestAVolumeIsOnlyWhereItsClassAllowsIt(t *testing.T) {
	w, request := zonedWorld(t), backendtest.Request("1")
	request.Topologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: zoneKey, Values: []string{"c", "b"}},
	}}}
	request.Node = &w.nodes[0]
	if _, err := w.Provision(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	asked := did[*csispec.CreateVolumeRequest](w.driver)[0].GetAccessibilityRequirements()
	if !slices.Equal(zones(asked.GetRequisite()), []string{"b", "c"}) || zones(asked.GetPreferred())[0] != "b" {
		t.Errorf("it may be in %v, and preferably in %v", zones(asked.GetRequisite()), zones(asked.GetPreferred()))
	}
	request.Node = &w.nodes[1]
	if _, err := w.Provision(t.Context(), request); !errors.Is(err, backend.WrongNode) {
		t.Errorf("for a node in another zone it has %v", err)
	}
}

func TestANodeWithoutTheDriverCannotHaveAVolume(t *testing.T) {
	w, request := zonedWorld(t), backendtest.Request("1")
	request.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	if _, err := w.Provision(t.Context(), request); !errors.Is(err, backend.WrongNode) {
		t.Errorf("it has %v", err)
	}
}

func TestEndlessTopologiesAreRefused(t *testing.T) {
	w, request := zonedWorld(t), backendtest.Request("1")
	var values []string
	for value := range 50 {
		values = append(values, fmt.Sprint(value))
	}
	request.Topologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: "a", Values: values}, {Key: "b", Values: values},
	}}}
	if _, err := w.Provision(t.Context(), request); !errors.Is(err, backend.Invalid) {
		t.Errorf("it has %v", err)
	}
}

func TestAnUndoLooksWhereTheFirstCallWasAndElsewhereOnceThatPlaceIsFull(t *testing.T) {
	for name, full := range map[string]string{"there is room": "", "its zone is full": "c"} {
		t.Run(name, func(t *testing.T) {
			w, request := zonedWorld(t), backendtest.Request("1")
			request.Node = &w.nodes[2]
			w.before = func(request any) error {
				if asked, is := request.(*csispec.CreateVolumeRequest); is && zones(asked.GetAccessibilityRequirements().GetPreferred())[0] == full {
					return status.Error(codes.ResourceExhausted, "there is no room")
				}
				return nil
			}
			if err := backend.Undo(t.Context(), w.Backend, request); err != nil || w.has(request.ID) {
				t.Errorf("it has %v", err)
			}
			asked := did[*csispec.CreateVolumeRequest](w.driver)
			if first := zones(asked[0].GetAccessibilityRequirements().GetPreferred())[0]; first != "c" {
				t.Errorf("it looks in zone %s first", first)
			}
		})
	}
}

func TestAnUndoForANodeThatIsGoneLooksWhereTheClassAllowsIt(t *testing.T) {
	w, request := zonedWorld(t), backendtest.Request("1")
	request.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
	if err := backend.Undo(t.Context(), w.Backend, request); err != nil || len(did[*csispec.CreateVolumeRequest](w.driver)) != 1 {
		t.Errorf("it has %v", err)
	}
}

func TestAZoneThatComesTakesVolumesFromNoOtherZone(t *testing.T) {
	w := zonedWorld(t)
	first := func(uid int) string {
		t.Helper()
		before := len(did[*csispec.CreateVolumeRequest](w.driver))
		if _, err := w.Provision(t.Context(), backendtest.Request(fmt.Sprint(uid))); err != nil {
			t.Fatal(err)
		}
		return zones(did[*csispec.CreateVolumeRequest](w.driver)[before].GetAccessibilityRequirements().GetPreferred())[0]
	}
	before := map[int]string{}
	for uid := range 30 {
		before[uid] = first(uid)
	}
	w.add("node-d", "d")
	for uid := range 30 {
		if now := first(uid); now != before[uid] && now != "d" {
			t.Errorf("a repeat for volume %d prefers zone %s, and the first call preferred %s", uid, now, before[uid])
		}
	}
}

func TestARepeatHasThePlacesOfTheFirstCallThoughTheirNodesAreGone(t *testing.T) {
	for name, again := range map[string]func(*world, backend.Request) error{
		"that is used": func(w *world, request backend.Request) error {
			_, err := w.Provision(t.Context(), request)
			return err
		},
		"that is undone": func(w *world, request backend.Request) error { return backend.Undo(t.Context(), w.Backend, request) },
	} {
		t.Run(name, func(t *testing.T) {
			w, request := zonedWorld(t), backendtest.Request("1")
			request.Node = &w.nodes[2]
			var err error
			if request.Placement, err = backend.Place(t.Context(), w.Backend, request); err != nil || request.Placement == nil {
				t.Fatalf("it is placed in %v, %v", request.Placement, err)
			}
			if _, err := w.Provision(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			w.nodes, w.csiNodes, request.Node = nil, nil, nil
			if err := again(w, request); err != nil {
				t.Fatal(err)
			}
			asked := did[*csispec.CreateVolumeRequest](w.driver)
			if got, want := asked[1].GetAccessibilityRequirements(), asked[0].GetAccessibilityRequirements(); !proto.Equal(got, want) {
				t.Errorf("the repeat has %v, and the first call had %v", got, want)
			}
		})
	}
}

func TestADriverWithoutTopologyKeysKnowsNoPlaces(t *testing.T) {
	w := newWorld(t)
	if placement, err := backend.Place(t.Context(), w.Backend, backendtest.Request("1")); placement != nil || err != nil {
		t.Errorf("it has %v, %v", placement, err)
	}
}
