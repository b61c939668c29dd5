package sanity_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// Outcome is how a suite ended.
type Outcome struct {
	// Trouble kept it from running, or from ending.
	Trouble string
	// Claims are the capabilities that the driver says it has.
	Claims []string
	// Specs are the tests.
	Specs []Spec
	// Left are volumes that are there still, after all was removed.
	Left []string
}

// Spec is how one of the tests ended.
type Spec struct {
	Name, State string
	// Why it failed, or was skipped.
	Why string
}

// outcomeOf is what Ginkgo reports, of tests and of what comes before and after them.
func outcomeOf(report ginkgo.Report) (got Outcome) {
	for _, one := range report.SpecReports {
		isTest := one.LeafNodeType.Is(types.NodeTypeIt)
		if isTest || one.State.Is(types.SpecStateFailureStates) {
			got.Specs = append(got.Specs, Spec{Name: one.FullText(), State: one.State.String(), Why: one.FailureMessage()})
		}
	}
	got.Trouble = strings.Join(report.SpecialSuiteFailureReasons, "; ")
	return got
}

const (
	passed  = "passed"
	skipped = "skipped"
	// pending specs are switched off in csi-sanity itself, whatever is tested.
	pending = "pending"
)

// in counts specs in one of some states.
func (o Outcome) in(states ...string) (found []Spec) {
	return slices.DeleteFunc(slices.Clone(o.Specs), func(one Spec) bool { return !slices.Contains(states, one.State) })
}

func (o Outcome) failed() []Spec {
	return slices.DeleteFunc(slices.Clone(o.Specs), func(one Spec) bool { return slices.Contains([]string{passed, skipped, pending}, one.State) })
}

// missed are the specs that were skipped though what they need is claimed, or for a
// reason that isn't known.
func (o Outcome) missed() []Spec {
	return slices.DeleteFunc(o.in(skipped), func(one Spec) bool {
		needed, known := needs[one.Why]
		return known && !slices.Contains(o.Claims, needed)
	})
}

func (o Outcome) String() string {
	return fmt.Sprintf("%d specs passed, %d failed, %d skipped because the driver doesn't claim what they need, %d are switched off in csi-sanity",
		len(o.in(passed)), len(o.failed()), len(o.in(skipped))-len(o.missed()), len(o.in(pending)))
}

// problem is what isn't as it is to be.
func (o Outcome) problem() error {
	var problems []error
	if o.Trouble != "" {
		problems = append(problems, errors.New(o.Trouble))
	}
	if len(o.in(passed)) == 0 {
		problems = append(problems, errors.New("no spec passed"))
	}
	for _, one := range o.failed() {
		problems = append(problems, fmt.Errorf("%s: %s: %s", one.State, one.Name, short(one.Why)))
	}
	for _, one := range o.missed() {
		problems = append(problems, fmt.Errorf("not run: %s: %s", one.Name, one.Why))
	}
	if len(o.Left) > 0 {
		problems = append(problems, fmt.Errorf("volumes are left: %v", o.Left))
	}
	return errors.Join(problems...)
}

// short is the beginning of why a spec failed: all of it is in the suite's log.
func short(why string) string {
	const lines, most = 3, 300
	text := strings.Join(strings.Fields(strings.Join(firstOf(strings.Split(why, "\n"), lines), " ")), " ")
	return text[:min(most, len(text))]
}

func firstOf(lines []string, most int) []string { return lines[:min(most, len(lines))] }

// summary is a suite's outcome, for people.
func (o Outcome) summary(name string) string {
	sign := "✓"
	if o.problem() != nil {
		sign = "✗"
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "  %s %-18s %d passed, %d failed, %d skipped\n", sign, name, len(o.in(passed)), len(o.failed()), len(o.in(skipped)))
	because := map[string]int{}
	for _, one := range o.in(skipped) {
		because[whySkipped(one, o.Claims)]++
	}
	for _, why := range slices.Sorted(maps.Keys(because)) {
		fmt.Fprintf(text, "      %2d skipped: %s\n", because[why], why)
	}
	if err := o.problem(); err != nil {
		fmt.Fprintf(text, "      %s\n", strings.ReplaceAll(err.Error(), "\n", "\n      "))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func whySkipped(one Spec, claims []string) string {
	needed, known := needs[one.Why]
	switch {
	case !known:
		return one.Why + " (NO REASON TO)"
	case slices.Contains(claims, needed):
		return needed + " is claimed (NO REASON TO)"
	default:
		return needed + " isn't claimed"
	}
}
