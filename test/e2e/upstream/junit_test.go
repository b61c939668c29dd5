package upstream_test

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// slowest is how many specs the report names as the slowest.
const slowest = 10

// report is what e2e.test reports of a run, as JUnit has it.
type report struct {
	Suites []struct {
		Cases []result `xml:"testcase"`
	} `xml:"testsuite"`
}

// result is that of one spec, or of what happens before and after all.
type result struct {
	Name    string   `xml:"name,attr"`
	Status  string   `xml:"status,attr"`
	Seconds float64  `xml:"time,attr"`
	Failure *message `xml:"failure"`
	Error   *message `xml:"error"`
	Skipped *message `xml:"skipped"`
}

type message struct {
	Text string `xml:"message,attr"`
}

func readReport(path string) (*report, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	read := &report{}
	if err := xml.Unmarshal(content, read); err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	return read, nil
}

// specs are the results of specs.
func (r *report) specs() (specs []result) {
	for _, suite := range r.Suites {
		for _, one := range suite.Cases {
			if strings.HasPrefix(one.Name, "[It]") {
				specs = append(specs, one)
			}
		}
	}
	return specs
}

// failed are those that failed, were interrupted, or timed out, and what failed around
// them.
func (r *report) failed() (failed []result) {
	for _, suite := range r.Suites {
		for _, one := range suite.Cases {
			if one.Failure != nil || one.Error != nil {
				failed = append(failed, one)
			}
		}
	}
	return failed
}

// skipped are the reasons for which specs skipped themselves, with how many did.
func (r *report) skipped() map[string]int {
	reasons := map[string]int{}
	for _, one := range r.specs() {
		// What was not selected is reported as skipped, with no reason.
		if one.Skipped != nil && one.Skipped.Text != "skipped" {
			reasons[strings.TrimPrefix(one.Skipped.Text, "skipped - ")]++
		}
	}
	return reasons
}

// passed is how many passed.
func (r *report) passed() (count int) {
	for _, one := range r.specs() {
		if one.Status == "passed" {
			count++
		}
	}
	return count
}

// ran is an error unless as many specs ran as were to: a selection that runs nothing must
// not pass.
func (r *report) ran(wanted int) error {
	ran := r.passed() + len(r.failed())
	for _, count := range r.skipped() {
		ran += count
	}
	if ran != wanted {
		return fmt.Errorf("%d specs ran, of %d that were to", ran, wanted)
	}
	return nil
}

// summarize says what happened, briefly.
func (r *report) summarize(to io.Writer) {
	reasons := r.skipped()
	skipped := 0
	for _, count := range reasons {
		skipped += count
	}
	fmt.Fprintf(to, "  %d passed, %d failed, %d skipped themselves\n", r.passed(), len(r.failed()), skipped)
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(to, "    skipped, %d: %s\n", reasons[reason], reason)
	}
	for _, one := range r.failed() {
		text := cmp.Or(one.Failure, one.Error).Text
		fmt.Fprintf(to, "  ✗ %s  (%.0f s)\n      %s\n", one.Name, one.Seconds, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      "))
	}
	specs := slices.DeleteFunc(r.specs(), func(one result) bool { return one.Skipped != nil })
	slices.SortFunc(specs, func(a, b result) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, one := range specs[:min(slowest, len(specs))] {
		fmt.Fprintf(to, "    %5.0f s  %s\n", one.Seconds, one.Name)
	}
}

// print says what runs, and what doesn't for which reason.
func (s *selection) print() {
	for _, one := range s.suites {
		fmt.Printf("Suite %s: %d specs\n", one.Name, len(s.specs[one.Name]))
	}
	for _, reason := range slices.Sorted(maps.Keys(s.skipped)) {
		fmt.Printf("  not run, %d: %s\n", len(s.skipped[reason]), reason)
	}
}
