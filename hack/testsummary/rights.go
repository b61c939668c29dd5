package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	rightsReport = "rights.json"
	// notCompared is said where test/rights didn't run: after some tests only, it would find unused rights.
	notCompared = "NOT COMPARED: only `make test` of all packages, as root and without a failure, compares them"
)

// readRights counts what test/rights ended with, after all other tests, and keeps what it logged.
func (r *results) readRights(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		r.rights = notCompared
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the report of test/rights: %w", err)
	}
	defer func() { _ = file.Close() }()
	compared, err := readGoTest(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	r.summary = r.plus(compared.summary)
	outcome := "OK"
	if compared.failed > 0 || compared.passed == 0 {
		outcome = "FAILED"
	}
	r.rights = outcome + ": " + compared.printed.lastLogged()
	return nil
}

// lastLogged returns the last line that the only test of a report logged.
func (s suites) lastLogged() string {
	last := "the log of go test has more"
	for _, text := range s {
		for _, found := range logLine.FindAllStringSubmatch(text, -1) {
			last = found[1]
		}
	}
	return last
}

func printRights(to io.Writer, r results) {
	if r.rights != "" {
		fmt.Fprintf(to, "\nRights that config/rbac grants, and requests of all tests:\n  %s\n", r.rights)
	}
}
