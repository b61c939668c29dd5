package sanity_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

func TestASpecThatDidNotRunThoughItCouldIsAProblem(t *testing.T) {
	const grows, why = "node EXPAND_VOLUME", "NodeExpandVolume not supported"
	fine := Spec{Name: "a", State: passed}
	for name, test := range map[string]struct {
		outcome Outcome
		problem string
	}{
		"all passed":                        {Outcome{Specs: []Spec{fine}}, ""},
		"one is switched off in csi-sanity": {Outcome{Specs: []Spec{fine, {Name: "b", State: pending}}}, ""},
		"what one needs isn't claimed":      {Outcome{Specs: []Spec{fine, {"b", skipped, why}}}, ""},
		"what one needs is claimed":         {Outcome{Claims: []string{grows}, Specs: []Spec{fine, {"b", skipped, why}}}, "not run: b"},
		"one was skipped for no reason":     {Outcome{Specs: []Spec{fine, {"b", skipped, "Required bytes not supported"}}}, "not run: b"},
		"one was skipped without a word":    {Outcome{Specs: []Spec{fine, {"b", skipped, ""}}}, "not run: b"},
		"one failed":                        {Outcome{Specs: []Spec{fine, {"b", "failed", "Expected\n  1\nto equal\n  2"}}}, "failed: b: Expected 1 to equal"},
		"one was cut off":                   {Outcome{Specs: []Spec{fine, {"b", "timedout", "too late"}}}, "timedout: b"},
		"none ran":                          {Outcome{Specs: []Spec{{"b", skipped, why}}}, "no spec passed"},
		"the suite didn't begin":            {Outcome{Trouble: "no socket"}, "no socket"},
		"a volume is left":                  {Outcome{Specs: []Spec{fine}, Left: []string{"pvc-1"}}, "volumes are left: [pvc-1]"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.outcome.problem()
			if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, want %q", err, test.problem)
			}
			if text := test.outcome.summary("nfs"); strings.Contains(text, "✓") != (err == nil) || !strings.Contains(text, test.problem) {
				t.Errorf("the summary is %q", text)
			}
		})
	}
}

func TestEachReasonToSkipIsACapabilityThatThereIs(t *testing.T) {
	for why, needed := range needs {
		service, name, _ := strings.Cut(needed, " ")
		if !isCapability(service, name) {
			t.Errorf("%q is said to be for want of %s, which there isn't", why, needed)
		}
	}
}

func isCapability(service, name string) bool {
	values, known := map[string]map[string]int32{
		"plug-in":    csi.PluginCapability_Service_Type_value,
		"node":       csi.NodeServiceCapability_RPC_Type_value,
		"controller": csi.ControllerServiceCapability_RPC_Type_value,
	}[service]
	_, there := values[name]
	return known && there
}
