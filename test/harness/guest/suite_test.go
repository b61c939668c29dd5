package guest

import (
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
