package main

import (
	"fmt"
	"io"
	"slices"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	localColumns = "%-14s %-8s %6v %6v %8s %8s %8s %9s %6v\n"

	// maxLocalTime is how many times as long as the bare operations it may take.
	maxLocalTime = 1.3
)

func (r *report) printLocalHeader(out io.Writer) {
	fmt.Fprintf(out, "\n"+localColumns, "LAYOUT", "PROGRAM", "N", "BOUND", "SECONDS", "P50 ms", "P99 ms", "DELETED/S", "LEFT")
}

// addLocal prints a round as it ends.
func (r *report) addLocal(out io.Writer, result localRound) {
	r.Local = append(r.Local, result)
	fmt.Fprintf(out, localColumns, result.Layout, result.Program, result.N, result.Bound, decimals(1, result.Seconds),
		decimals(0, result.Latency.P50), decimals(0, result.Latency.P99), decimals(0, result.DeletedPerSecond), result.Left)
}

// judgeLocal sets what was measured of local volumes beside what is wanted.
func (r *report) judgeLocal() {
	for _, layout := range localLayouts {
		rounds, bare := r.localsOf(subjectOf, layout), r.localsOf(isBare, layout)
		var ratios []float64
		for i := range min(len(rounds), len(bare)) {
			ratios = append(ratios, rounds[i].Seconds/bare[i].Seconds)
		}
		if len(ratios) == 0 {
			continue
		}
		n := rounds[0].N
		bound := slices.Min(each(rounds, func(round localRound) int { return round.Bound }))
		left := slices.Max(each(rounds, func(round localRound) int { return round.Left }))
		name := fmt.Sprintf("local, %s, n=%d", layout, n)
		r.add(name+": each claim bound", fmt.Sprint(n), fmt.Sprint(bound), bound == n, true)
		r.add(name+": left when all is deleted", "0", fmt.Sprint(left), left == 0, true)
		r.atMost(name+": time, to that of the bare operations", median(ratios), maxLocalTime, "x")
	}
}

func (r *report) localsOf(program func(string) bool, layout stowagev1alpha1.LocalLayout) []localRound {
	return slices.DeleteFunc(slices.Clone(r.Local), func(round localRound) bool { return !program(round.Program) || round.Layout != layout })
}
