package guest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
)

// report writes a report of a spec with so many steps that ended.
func report(t *testing.T, steps int) string {
	t.Helper()
	spec := types.SpecReport{SpecEvents: types.SpecEvents{{SpecEventType: types.SpecEventByStart}}}
	for range steps {
		spec.SpecEvents = append(spec.SpecEvents, types.SpecEvent{SpecEventType: types.SpecEventByEnd})
	}
	content, err := json.Marshal([]types.Report{{SpecReports: types.SpecReports{{}, spec}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASuiteWithoutStepsHasProvedNothing(t *testing.T) {
	if err := printSteps(report(t, 0)); err == nil {
		t.Error("it passes")
	}
	if err := printSteps(report(t, 2)); err != nil {
		t.Error(err)
	}
	if err := printSteps(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("without a report it passes")
	}
}
