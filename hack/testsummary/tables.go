package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

const mostRows = 10

type results struct {
	summary
	packages, tests []timed
	skipped         map[string]int
	// retried are specs that passed, but not at once.
	retried []string
	// rights is what test/rights found; "" where go test's report is not there.
	rights string
	// printed is what the tests of go test's report printed.
	printed suites
	// countsSpecs is whether the summary is of specs, by the reports of their suites.
	countsSpecs bool
}

type timed struct {
	name string
	took time.Duration
}

func printTimed(to io.Writer, heading string, rows []timed) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(to, "\n%s:\n", heading)
	rows = slices.SortedFunc(slices.Values(rows), func(a, b timed) int {
		return cmp.Or(cmp.Compare(b.took, a.took), strings.Compare(a.name, b.name))
	})
	for _, row := range rows[:min(mostRows, len(rows))] {
		fmt.Fprintf(to, "  %7.1f s  %s\n", row.took.Seconds(), row.name)
	}
}

func printSkipped(to io.Writer, r results) {
	if len(r.skipped) == 0 {
		return
	}
	fmt.Fprintln(to, "\nNOT RUN here, and why:")
	for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
		fmt.Fprintf(to, "  %5d  %s\n", r.skipped[reason], reason)
	}
}

func printRetried(to io.Writer, r results) bool {
	if len(r.retried) == 0 {
		fmt.Fprintln(to, "\nRetries: none.")
		return false
	}
	fmt.Fprintln(to, "\nFLAKED: passed only when they were tried again:")
	for _, name := range r.retried {
		fmt.Fprintln(to, "  "+name)
	}
	return true
}
