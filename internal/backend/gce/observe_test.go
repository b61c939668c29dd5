package gce

import (
	"net/http"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func TestAMachineIsObservedAsItIs(t *testing.T) {
	w := newWorld(t)
	w.stopInstance(node("node-2"))
	for name, test := range map[string]struct {
		node backend.NodeIdentity
		want backend.Machine
	}{
		"one that runs":                     {node("node-1"), backend.MachineRuns},
		"one that was stopped":              {node("node-2"), backend.MachineStopped},
		"one that there is no more":         {node("node-9"), backend.MachineGone},
		"one known by name":                 {backend.NodeIdentity{Name: "node-1"}, backend.MachineRuns},
		"one with an unused name":           {backend.NodeIdentity{Name: "node-9"}, backend.MachineUnknown},
		"one with an impossible name":       {backend.NodeIdentity{Name: "node.example.com"}, backend.MachineUnknown},
		"one of another provider":           {backend.NodeIdentity{Name: "node-1", ProviderID: "aws:///eu-1/i-7"}, backend.MachineUnknown},
		"one of another project that shows": {backend.NodeIdentity{Name: "n", ProviderID: "gce://other/europe-west3-a/n"}, backend.MachineGone},
	} {
		got, err := w.open().ObserveNode(t.Context(), test.node)
		if err != nil || got != test.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestTwoMachinesOfOneNameAreNone(t *testing.T) {
	w := newWorld(t)
	w.must(w.mock.EnsureInstance(project, zoneC, "node-1", "e2-standard-2"))
	if got, err := w.open().ObserveNode(t.Context(), backend.NodeIdentity{Name: "node-1"}); err != nil || got != backend.MachineUnknown {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAMachineThatCanNotBeSeenIsNotGone(t *testing.T) {
	for name, test := range map[string]struct {
		node   backend.NodeIdentity
		faults []gcemock.Fault
		kind   backend.ErrorKind
	}{
		"a hidden project":          {backend.NodeIdentity{Name: "n", ProviderID: "gce://hidden/europe-west3-a/n"}, nil, backend.Unavailable},
		"a zone that isn't there":   {nodeAt("mars-a", "n"), nil, backend.Invalid},
		"an id that can't be read":  {backend.NodeIdentity{Name: "n", ProviderID: "gce://n"}, nil, backend.Invalid},
		"a list that isn't allowed": {node("node-9"), []gcemock.Fault{{Method: "instances.list", Status: http.StatusForbidden, Reason: "forbidden"}}, backend.Unavailable},
		"a get that lies":           {node("node-9"), []gcemock.Fault{{Method: "instances.*", Status: http.StatusNotFound}}, backend.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.inject(test.faults...)
			got, err := w.open().ObserveNode(t.Context(), test.node)
			w.mustBe(err, test.kind)
			if got != backend.MachineUnknown {
				t.Errorf("it is said to be %q", got)
			}
		})
	}
}

func TestAMachineThatIsListedIsNotGone(t *testing.T) {
	w := newWorld(t)
	w.inject(gcemock.Fault{Method: "instances.get", Status: http.StatusNotFound})
	if got, err := w.open().ObserveNode(t.Context(), node("node-1")); err != nil || got != backend.MachineRuns {
		t.Errorf("%q, %v", got, err)
	}
}

// Each status that Google documents means something, and one that it invents nothing.
func TestEachStatusOfAnInstanceMeansSomething(t *testing.T) {
	for status, want := range map[string]backend.Machine{
		"SUSPENDED": backend.MachineRuns, "SUSPENDING": backend.MachineRuns, "REPAIRING": backend.MachineRuns, "STOPPING": backend.MachineRuns,
		"STAGING": backend.MachineRuns, "TERMINATED": backend.MachineStopped, "STOPPED": backend.MachineStopped, "MELTED": backend.MachineUnknown,
	} {
		if got := machineOfStatus[status]; got != want {
			t.Errorf("%s is %q", status, got)
		}
	}
}
