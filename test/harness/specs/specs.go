// Package specs runs the Ginkgo specs of a package under `go test`. All packages run
// them alike: in random order, and with a report of each spec where one is wanted.
//
// Suites whose specs need guests use package guest instead.
package specs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// ReportsVariable names the folder into which suites write their reports, as JSON and
// JUnit. `make test` sets it, and its summary reads them. Unset: they write none.
const ReportsVariable = "STOWAGE_TEST_REPORTS"

// toReport is how long before `go test` kills a program its suite ends by itself. A spec that hangs is named then, with the
// line where it waits; `go test` would show thousands of goroutines.
const toReport = time.Minute

// Run runs all specs of the package of t. The description names the reports, too.
func Run(t *testing.T, description string) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.RandomizeAllSpecs = true
	if killed, known := t.Deadline(); known {
		suite.Timeout = min(suite.Timeout, max(time.Until(killed)-toReport, toReport))
	}
	if folder := os.Getenv(ReportsVariable); folder != "" {
		name := filepath.Join(folder, strings.ReplaceAll(strings.ToLower(description), " ", "-"))
		reporter.JSONReport, reporter.JUnitReport = name+".json", name+".xml"
	}
	if !ginkgo.RunSpecs(t, description, suite, reporter) {
		repeatReasons()
	}
}

const (
	// mostReasons is how many failures have their reasons at the end, and longestReason how much of each, in characters.
	mostReasons   = 3
	longestReason = 1000
)

// reasons are why specs failed.
var reasons []string

var _ = ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
	if report.Failed() {
		reasons = append(reasons, fmt.Sprintf("%s\n%.*s", report.FullText(), longestReason, report.FailureMessage()))
	}
})

// repeatReasons prints why the first specs failed. Ginkgo's own last lines only name them, and what was before may be far up,
// or cut off.
func repeatReasons() {
	for _, reason := range reasons[:min(len(reasons), mostReasons)] {
		fmt.Printf("\nIt failed: %s\n", reason)
	}
}
