package main

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

// summary is how many tests ended how. A Ginkgo spec is a test; the Go function
// that runs a Ginkgo suite is none, and neither is a Go test with subtests.
type summary struct{ passed, failed, skipped int }

func (s summary) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", s.passed, s.failed, s.skipped)
}

var (
	colour  = regexp.MustCompile("\x1b\\[[0-9;]*m")
	logLine = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)
	// specsLine finds the last one.
	specsLine = regexp.MustCompile(`(?s).*\b(\d+) Passed \| (\d+) Failed \|[^\n]*?(\d+) Pending \| (\d+) Skipped`)
)

func readGoTest(report io.Reader) (results, error) {
	printed := suites{}
	run, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: report, Handler: printed})
	all := results{skipped: map[string]int{}, printed: printed}
	for _, name := range run.Packages() {
		if name != "" { // a compiler's output is of no package
			all.addPackage(name, run.Package(name), printed)
		}
	}
	return all, err
}

// addPackage counts the tests of a package. One that didn't compile, panicked, timed out, or
// failed around its subtests has no failed test to show for it.
func (r *results) addPackage(name string, pkg *testjson.Package, printed suites) {
	parents := map[string]bool{}
	for _, test := range pkg.TestCases() {
		parents[test.Test.Parent()] = true
	}
	var total summary
	count := func(tests []testjson.TestCase, each summary) {
		for _, test := range tests {
			if specs, is := printed.specs(test); is {
				specs.failed = max(specs.failed, each.failed)
				total = total.plus(specs)
			} else if !parents[test.Test.Name()] {
				total = total.plus(each)
				r.tests = append(r.tests, timed{path.Base(name) + ": " + test.Test.Name(), test.Elapsed})
			}
		}
	}
	count(pkg.Passed, summary{passed: 1})
	count(pkg.Failed, summary{failed: 1})
	count(pkg.Skipped, summary{skipped: 1})
	if pkg.Result() == testjson.ActionFail {
		total.failed = max(total.failed, 1)
	}
	for _, test := range pkg.Skipped {
		if !parents[test.Test.Name()] {
			r.skipped[reason(pkg, test)]++
		}
	}
	r.summary = r.plus(total)
	r.packages = append(r.packages, timed{name, pkg.Elapsed()})
}

// suites are the ends of what tests printed. Those of Ginkgo suites say how their specs ended.
type suites map[string]string

const endOfSuite = 1000

func (s suites) Event(event testjson.TestEvent, _ *testjson.Execution) error {
	if event.Action == testjson.ActionOutput && event.Test != "" {
		text := s[event.Package+" "+event.Test] + event.Output
		s[event.Package+" "+event.Test] = text[max(0, len(text)-endOfSuite):]
	}
	return nil
}

func (suites) Err(string) error { return nil }

func (s suites) specs(test testjson.TestCase) (specs summary, is bool) {
	text := colour.ReplaceAllString(s[test.Package+" "+test.Test.Name()], "")
	found := specsLine.FindStringSubmatch(text)
	if found == nil {
		return summary{}, false
	}
	return summary{passed: number(found[1]), failed: number(found[2]), skipped: number(found[3]) + number(found[4])}, true
}

// reason is what a test logged last before it was skipped.
func reason(pkg *testjson.Package, test testjson.TestCase) string {
	said := "no reason given"
	for _, found := range logLine.FindAllStringSubmatch(strings.Join(pkg.OutputLines(test), ""), -1) {
		said = found[1]
	}
	return said
}

func (s summary) plus(other summary) summary {
	return summary{passed: s.passed + other.passed, failed: s.failed + other.failed, skipped: s.skipped + other.skipped}
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // a pattern found them
	return n
}
