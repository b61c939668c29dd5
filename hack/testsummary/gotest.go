package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// summary is how many tests ended how. A Ginkgo spec is a test; the Go function
// that runs a Ginkgo suite is none, and neither is a Go test with subtests.
type summary struct{ passed, failed, skipped int }

func (s summary) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", s.passed, s.failed, s.skipped)
}

type event struct {
	Action, Package, Test, Output string
	// Elapsed is in seconds.
	Elapsed float64
}

// test is what the events say of one Go test function, subtest, or (with an empty name)
// package.
type test struct {
	outcome     string
	took        time.Duration
	hasSubtests bool
	specs       *summary
	// said is what the test logged last: of one that was skipped, the reason.
	said string
	// line is output that no newline has ended yet.
	line string
}

type testName struct{ pkg, test string }

var (
	colour   = regexp.MustCompile("\x1b\\[[0-9;]*m")
	logLine  = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)$`)
	specLine = regexp.MustCompile(`(\d+) Passed \| (\d+) Failed \|.*?(\d+) Pending \| (\d+) Skipped`)
)

func readGoTest(report io.Reader) (results, error) {
	tests := map[testName]*test{}
	decoder := json.NewDecoder(report)
	for {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return resultsOf(tests), nil
		}
		if err != nil {
			return results{}, err
		}
		record(tests, e)
	}
}

// resultsOf sorts tests out. The specs of suites have reports of their own.
func resultsOf(tests map[testName]*test) results {
	all := results{summary: sum(tests), skipped: map[string]int{}}
	for name, t := range tests {
		switch {
		case name.test == "":
			all.packages = append(all.packages, timed{name.pkg, t.took})
		case t.hasSubtests || t.specs != nil:
		default:
			all.tests = append(all.tests, timed{path.Base(name.pkg) + ": " + name.test, t.took})
			if t.outcome == "skip" {
				all.skipped[cmp.Or(t.said, "no reason given")]++
			}
		}
	}
	return all
}

func record(tests map[testName]*test, e event) {
	name := testName{e.Package, e.Test}
	t := tests[name]
	if t == nil {
		t = &test{}
		tests[name] = t
	}
	switch e.Action {
	case "output":
		t.read(e.Output)
	case "pass", "fail", "skip":
		t.outcome, t.took = e.Action, time.Duration(e.Elapsed*float64(time.Second))
	}
	if above := tests[testName{e.Package, path.Dir(e.Test)}]; above != nil {
		above.hasSubtests = true
	}
}

func (t *test) read(output string) {
	t.line += output
	for {
		line, rest, ended := strings.Cut(t.line, "\n")
		if !ended {
			return
		}
		t.line = rest
		t.readLine(colour.ReplaceAllString(line, ""))
	}
}

func (t *test) readLine(line string) {
	if found := logLine.FindStringSubmatch(line); found != nil {
		t.said = found[1]
	}
	if found := specLine.FindStringSubmatch(line); found != nil {
		t.specs = &summary{passed: number(found[1]), failed: number(found[2]), skipped: number(found[3]) + number(found[4])}
	}
}

func sum(tests map[testName]*test) summary {
	var total summary
	failedIn := map[string]bool{}
	for name, t := range tests {
		one := t.summary()
		if name.test == "" || t.hasSubtests {
			continue
		}
		total = total.plus(one)
		failedIn[name.pkg] = failedIn[name.pkg] || one.failed > 0
	}
	// What didn't compile, panicked, timed out, or failed around its subtests
	// has no failed test to show for it.
	for name, t := range tests {
		if t.outcome == "fail" && name.test == "" && !failedIn[name.pkg] {
			total.failed++
		}
	}
	return total
}

func (t *test) summary() summary {
	switch {
	case t.specs != nil:
		result := *t.specs
		if t.outcome == "fail" && result.failed == 0 {
			result.failed = 1
		}
		return result
	default:
		return map[string]summary{"pass": {passed: 1}, "skip": {skipped: 1}, "fail": {failed: 1}}[t.outcome]
	}
}

func (s summary) plus(other summary) summary {
	s.passed += other.passed
	s.failed += other.failed
	s.skipped += other.skipped
	return s
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
