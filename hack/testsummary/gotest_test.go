package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	for _, c := range []struct {
		name   string
		events string
		want   summary
	}{
		{"nothing", ``, summary{}},
		{
			"each outcome", `
			{"Action":"run","Package":"p","Test":"A"}
			{"Action":"pass","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p","Test":"B"}
			{"Action":"skip","Package":"p","Test":"C"}
			{"Action":"fail","Package":"p"}`,
			summary{passed: 1, failed: 1, skipped: 1},
		},
		{
			"a test with subtests is its subtests", `
			{"Action":"run","Package":"p","Test":"A"}
			{"Action":"run","Package":"p","Test":"A/x"}
			{"Action":"run","Package":"p","Test":"A/y"}
			{"Action":"pass","Package":"p","Test":"A/x"}
			{"Action":"pass","Package":"p","Test":"A/y"}
			{"Action":"pass","Package":"p","Test":"A"}`,
			summary{passed: 2},
		},
		{
			"a test that fails around its subtests", `
			{"Action":"run","Package":"p","Test":"A"}
			{"Action":"run","Package":"p","Test":"A/x"}
			{"Action":"pass","Package":"p","Test":"A/x"}
			{"Action":"fail","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p"}`,
			summary{passed: 1, failed: 1},
		},
		{
			"a suite is its specs", `
			{"Action":"output","Package":"p","Test":"Suite","Output":"Ran 7 of 10 Specs in 0.1 seconds\n"}
			{"Action":"output","Package":"p","Test":"Suite","Output":"\u001b[38;5;9m\u001b[1mFAIL!\u001b[0m -- \u001b[32m5 Passed\u001b[0m | 2 Failed |"}
			{"Action":"output","Package":"p","Test":"Suite","Output":" 1 Pending | 2 Skipped\n"}
			{"Action":"fail","Package":"p","Test":"Suite"}
			{"Action":"fail","Package":"p"}`,
			summary{passed: 5, failed: 2, skipped: 3},
		},
		{
			"a flaked spec passed", `
			{"Action":"output","Package":"p","Test":"S","Output":"SUCCESS! -- 3 Passed | 0 Failed | 1 Flaked | 0 Pending | 0 Skipped\n"}
			{"Action":"pass","Package":"p","Test":"S"}`,
			summary{passed: 3},
		},
		{
			"a suite whose set-up failed", `
			{"Action":"output","Package":"p","Test":"S","Output":"FAIL! -- 0 Passed | 0 Failed | 0 Pending | 4 Skipped\n"}
			{"Action":"fail","Package":"p","Test":"S"}
			{"Action":"fail","Package":"p"}`,
			summary{failed: 1, skipped: 4},
		},
		{
			"a package that doesn't compile", `
			{"Action":"build-output","ImportPath":"p","Output":"syntax error\n"}
			{"Action":"build-fail","ImportPath":"p"}
			{"Action":"fail","Package":"p","FailedBuild":"p"}`,
			summary{failed: 1},
		},
		{
			"a panic leaves tests without an end", `
			{"Action":"run","Package":"p","Test":"A"}
			{"Action":"output","Package":"p","Test":"A","Output":"panic: test timed out after 1s\n"}
			{"Action":"fail","Package":"p"}`,
			summary{failed: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readGoTest(strings.NewReader(strings.TrimSpace(c.events)))
			if err != nil {
				t.Fatal(err)
			}
			if got.summary != c.want {
				t.Errorf("got %+v, want %+v", got.summary, c.want)
			}
		})
	}
}

func TestCountRefusesWhatIsNoReport(t *testing.T) {
	if _, err := readGoTest(strings.NewReader("ok  p 0.1s")); err == nil {
		t.Error("text that isn't JSON was accepted")
	}
}

func TestReportSaysWhatWasSkippedAndWhy(t *testing.T) {
	all, err := readGoTest(strings.NewReader(`
		{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:1: needs root: it mounts\n"}
		{"Action":"skip","Package":"p","Test":"A"}
		{"Action":"output","Package":"p","Test":"B","Output":"    a_test.go:2: needs root: it mounts\n"}
		{"Action":"skip","Package":"p","Test":"B"}
		{"Action":"pass","Package":"p"}`[1:]))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	printSkipped(&text, all)
	if want := "2  needs root: it mounts\n"; !strings.Contains(text.String(), want) {
		t.Errorf("got %q, want it to contain %q", text.String(), want)
	}
}

func TestSpecsCountByTheirTimeTheirReasonsAndTheirRetries(t *testing.T) {
	suite := filepath.Join(t.TempDir(), "suite.json")
	report := `[{"SpecReports": [
		{"LeafNodeType": "It", "ContainerHierarchyTexts": ["A claim"], "LeafNodeText": "is bound", "State": "passed", "RunTime": 2000000000, "NumAttempts": 2},
		{"LeafNodeType": "It", "LeafNodeText": "mounts", "State": "skipped", "Failure": {"Message": "needs root: it mounts"}},
		{"LeafNodeType": "It", "LeafNodeText": "isn't chosen", "State": "skipped"},
		{"LeafNodeType": "BeforeSuite", "State": "passed", "RunTime": 1000000000}]}]`
	if err := os.WriteFile(suite, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	all := results{skipped: map[string]int{}, countsSpecs: true}
	if err := all.readSuite(suite); err != nil {
		t.Fatal(err)
	}
	if want := []timed{{"A claim is bound", 2 * time.Second}, {"BeforeSuite", time.Second}}; !slices.Equal(all.tests, want) {
		t.Errorf("tests are %v, want %v", all.tests, want)
	}
	if want := map[string]int{"needs root: it mounts": 1, notChosen: 1}; !maps.Equal(all.skipped, want) {
		t.Errorf("skipped are %v, want %v", all.skipped, want)
	}
	if want := (summary{passed: 1, skipped: 2}); all.summary != want {
		t.Errorf("it counts %s, want %s", all.summary, want)
	}
	var text strings.Builder
	if !printRetried(&text, all) || !strings.Contains(text.String(), "A claim is bound") {
		t.Errorf("the retried spec isn't named: %q", text.String())
	}
}

func TestTheSummaryHasWhatTheComparisonOfRightsFound(t *testing.T) {
	const found = `{"Action":"output","Package":"p","Test":"Rights","Output":"    a_test.go:1: denied: manager: get pods\n"}
		{"Action":"output","Package":"p","Test":"Rights","Output":"    a_test.go:2: 3 kinds of requests and 2 rights were compared: 1 problems\n"}
		{"Action":"ACTION","Package":"p","Test":"Rights"}
		{"Action":"ACTION","Package":"p"}`
	const broken = `{"Action":"fail","Package":"p","FailedBuild":"p"}`
	for name, test := range map[string]struct {
		report, line string
		counted      summary
	}{
		"it didn't run":     {line: notCompared},
		"it passed":         {strings.ReplaceAll(found, "ACTION", "pass"), "OK: 3 kinds of requests and 2 rights were compared: 1 problems", summary{passed: 1}},
		"it failed":         {strings.ReplaceAll(found, "ACTION", "fail"), "FAILED: 3 kinds of requests and 2 rights were compared: 1 problems", summary{failed: 1}},
		"it didn't compile": {broken, "FAILED: the log of go test has more", summary{failed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range map[string]string{goReport: "", rightsReport: test.report} {
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if test.report == "" {
				if err := os.Remove(filepath.Join(folder, rightsReport)); err != nil {
					t.Fatal(err)
				}
			}
			all, err := readAll(folder)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			printRights(&text, all)
			if !strings.Contains(text.String(), "\n  "+test.line+"\n") || all.summary != test.counted {
				t.Errorf("got %q and %s, want %q and %s", text.String(), all.summary, test.line, test.counted)
			}
		})
	}
}

func TestSummaryIsOneLine(t *testing.T) {
	if got, want := (summary{passed: 3, failed: 1, skipped: 2}).String(), "3 passed, 1 failed, 2 skipped"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
