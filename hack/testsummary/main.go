// Command testsummary reads what `make test`, or the suites of test/e2e, have written into
// the folder that is its argument: go-test.json, of `go test -json`, if that was what ran
// them, and a JSON report of each Ginkgo suite; beside the former, rights.json of test/rights. It
// prints which packages took longest, the ten slowest tests, what was skipped and why, what
// test/rights found, and on its last line how many tests passed, failed and were skipped.
//
// Its exit status is 1 where it can't read a report, or where a spec passed only when it was
// tried again: a test that passes sometimes proves nothing. Tests that failed are go test's
// own to report.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const goReport = "go-test.json"

var errRetried = errors.New("specs passed only when they were tried again")

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: testsummary FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	results, err := readAll(folder)
	if err != nil {
		return err
	}
	printTimed(os.Stdout, "The packages that took longest", results.packages)
	printTimed(os.Stdout, "The slowest tests", results.tests)
	printSkipped(os.Stdout, results)
	retried := printRetried(os.Stdout, results)
	printRights(os.Stdout, results)
	fmt.Println()
	fmt.Println(results.summary)
	if retried {
		return errRetried
	}
	return nil
}

func readAll(folder string) (results, error) {
	all, err := readGoReport(filepath.Join(folder, goReport))
	if err != nil {
		return results{}, err
	}
	suites, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return results{}, err
	}
	for _, suite := range suites {
		if slices.Contains([]string{goReport, rightsReport}, filepath.Base(suite)) {
			continue
		}
		if err := all.readSuite(suite); err != nil {
			return results{}, fmt.Errorf("reading %s: %w", suite, err)
		}
	}
	return all, nil
}

// readGoReport reads the report of `go test -json`, which counts the specs of its suites.
// Without one the specs are counted by their own reports.
func readGoReport(path string) (results, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return results{skipped: map[string]int{}, countsSpecs: true}, nil
	}
	if err != nil {
		return results{}, fmt.Errorf("opening the report of go test: %w", err)
	}
	defer func() { _ = file.Close() }()
	all, err := readGoTest(file)
	if err != nil {
		return results{}, fmt.Errorf("reading %s: %w", path, err)
	}
	err = all.readRights(filepath.Join(filepath.Dir(path), rightsReport))
	return all, err
}
