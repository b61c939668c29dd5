package upstream_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const junit = `<testsuites tests="4"><testsuite name="Kubernetes e2e suite">
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="1"></testcase>
<testcase name="[It] one" status="passed" time="9"></testcase>
<testcase name="[It] two" status="skipped" time="1"><skipped message="skipped - Driver x doesn&#39;t do it"></skipped></testcase>
<testcase name="[It] three" status="failed" time="5"><failure message="it broke" type="failed">there</failure></testcase>
<testcase name="[It] four" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>`

func readText(t *testing.T, text string) *report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestTheReportSaysWhatFailedAndWhySpecsSkippedThemselves(t *testing.T) {
	var printed strings.Builder
	readText(t, junit).summarize(&printed)
	for _, want := range []string{"1 passed, 1 failed, 1 skipped", "1: Driver x doesn't do it", "[It] three", "it broke", "9 s  [It] one"} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("it doesn't say %q:\n%s", want, printed.String())
		}
	}
}

func TestASelectionThatDoesNotRunDoesNotPass(t *testing.T) {
	read := readText(t, junit)
	if err := read.ran(3); err != nil {
		t.Error(err)
	}
	if err := read.ran(4); err == nil {
		t.Error("it passes, though one spec of those selected didn't run")
	}
}
