package guest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
)

// report is of a suite that passed, and of a spec with so many steps that ended.
func report(steps int) types.Report {
	spec := types.SpecReport{SpecEvents: types.SpecEvents{{SpecEventType: types.SpecEventByStart}}}
	for range steps {
		spec.SpecEvents = append(spec.SpecEvents, types.SpecEvent{SpecEventType: types.SpecEventByEnd})
	}
	return types.Report{SuiteSucceeded: true, SpecReports: types.SpecReports{{}, spec}}
}

func TestASuiteWithoutStepsHasProvedNothing(t *testing.T) {
	if _, err := countSteps(report(0)); err == nil {
		t.Error("it passes")
	}
	if steps, err := countSteps(report(2)); steps != 2 || err != nil {
		t.Errorf("it counts %d: %v", steps, err)
	}
}

func TestTheEndOfARunSaysWhatFailed(t *testing.T) {
	held := types.SpecReport{LeafNodeText: "one that holds", State: types.SpecStatePassed}
	failed := types.SpecReport{
		LeafNodeText: "one that fails", State: types.SpecStateFailed,
		Failure: types.Failure{Message: "pod 7 doesn't run" + strings.Repeat(".", mostOfMessage)},
	}
	content, err := json.Marshal([]types.Report{{SpecReports: types.SpecReports{held, failed}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	got := failures(path)
	if !strings.HasPrefix(got, "\none that fails: pod 7 doesn't run.") || len(got) > mostOfMessage+100 || strings.Contains(got, "holds") {
		t.Errorf("it says %q", got)
	}
	if got := failures(path + ".not-there"); got != "" {
		t.Errorf("without a report it says %q", got)
	}
}
