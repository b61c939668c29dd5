// Command testsummary reads the JSON that `go test -json` writes, from the file
// named as its argument, and prints one line: how many tests passed, failed and
// were skipped. `make test` ends with it.
//
// It only counts: its exit status says whether it could read the file, not
// whether tests failed.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: testsummary FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("opening the test report: %w", err)
	}
	defer func() { _ = file.Close() }()
	summary, err := count(file)
	if err != nil {
		return fmt.Errorf("reading the test report %s: %w", name, err)
	}
	if summary.notRoot > 0 {
		fmt.Printf("\n!!! %d tests need root and were SKIPPED: mounts are not tested. Run 'make test' as root.\n\n", summary.notRoot)
	}
	fmt.Println(summary)
	return nil
}
