package gcedriver_test

import (
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// outcome is how csi-sanity ended.
type outcome struct {
	subject string
	// Trouble kept it from running, or from ending.
	Trouble string
	Specs   []spec
}

// spec is how one spec ended.
type spec struct {
	Name, State string
	// Why it failed or was skipped.
	Why string
}

// outcomeOf is what Ginkgo reports of the specs in focus. The others are skipped without
// a word.
func outcomeOf(report ginkgo.Report) (got outcome) {
	for _, one := range report.SpecReports {
		isTest := one.LeafNodeType.Is(types.NodeTypeIt)
		unfocused := one.State.Is(types.SpecStateSkipped) && one.FailureMessage() == ""
		if isTest && !unfocused || one.State.Is(types.SpecStateFailureStates) {
			got.Specs = append(got.Specs, spec{Name: one.FullText(), State: one.State.String(), Why: one.FailureMessage()})
		}
	}
	got.Trouble = strings.Join(report.SpecialSuiteFailureReasons, "; ")
	return got
}

func (o outcome) count(state string) (count int) {
	for _, one := range o.Specs {
		if one.State == state {
			count++
		}
	}
	return count
}

func (o outcome) String() string {
	known := 0
	for _, one := range o.Specs {
		if knownFailure(o.subject, one) != "" {
			known++
		}
	}
	return fmt.Sprintf("%d specs passed, %d failed because of the driver, %d skipped, %d pending in csi-sanity",
		o.count("passed"), known, o.count("skipped"), o.count("pending"))
}

// problems are what is not as it should be.
func (o outcome) problems() (problems []string) {
	if o.Trouble != "" {
		problems = append(problems, o.Trouble)
	}
	if o.count("passed") == 0 {
		problems = append(problems, "no spec passed")
	}
	for _, one := range o.Specs {
		known := knownFailure(o.subject, one)
		switch one.State {
		case "pending":
		case "passed":
			if isListed(o.subject, one.Name) {
				problems = append(problems, "it passes, though known_test.go says that it fails: "+one.Name)
			}
		case "skipped":
			if skips[one.Why] == "" {
				problems = append(problems, "it was skipped for a reason that is not known: "+one.Name+": "+one.Why)
			}
		default:
			if known == "" {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", one.State, one.Name, one.Why))
			}
		}
	}
	return problems
}
