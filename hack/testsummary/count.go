package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// summary is how many tests ended how. A Ginkgo spec is a test; the Go function
// that runs a Ginkgo suite is none, and neither is a Go test with subtests.
type summary struct {
	passed, failed, skipped int
	// notRoot are those of skipped that say they need root.
	notRoot int
}

func (s summary) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", s.passed, s.failed, s.skipped)
}

// event is one line of the output of `go test -json`.
type event struct {
	Action, Package, Test, Output string
}

// test is what the events told of one Go test function, subtest, or (with an
// empty name) package.
type test struct {
	outcome     string
	hasSubtests bool
	specs       *summary
	needsRoot   int
	// line is output that no newline has ended yet.
	line string
}

type testName struct{ pkg, test string }

var (
	colour   = regexp.MustCompile("\x1b\\[[0-9;]*m")
	specLine = regexp.MustCompile(`(\d+) Passed \| (\d+) Failed \|.*?(\d+) Pending \| (\d+) Skipped`)
)

// count reads events to their end and sums them up.
func count(report io.Reader) (summary, error) {
	tests := map[testName]*test{}
	decoder := json.NewDecoder(report)
	for {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return sum(tests), nil
		}
		if err != nil {
			return summary{}, err
		}
		record(tests, e)
	}
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
		t.outcome = e.Action
	}
	if parent, _, nested := cutLast(e.Test, "/"); nested {
		if above := tests[testName{e.Package, parent}]; above != nil {
			above.hasSubtests = true
		}
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
	if strings.Contains(strings.ToLower(line), "needs root") {
		t.needsRoot++
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
		result.notRoot = min(t.needsRoot, result.skipped)
		if t.outcome == "fail" && result.failed == 0 {
			result.failed = 1
		}
		return result
	case t.outcome == "pass":
		return summary{passed: 1}
	case t.outcome == "skip":
		return summary{skipped: 1, notRoot: min(t.needsRoot, 1)}
	case t.outcome == "fail":
		return summary{failed: 1}
	default:
		return summary{}
	}
}

func (s summary) plus(other summary) summary {
	s.passed += other.passed
	s.failed += other.failed
	s.skipped += other.skipped
	s.notRoot += other.notRoot
	return s
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
