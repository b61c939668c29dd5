package main

import (
	"fmt"
	"io"
	"slices"
)

const provisionColumns = "%-14s %-8s %6v %6v %8s %8s %7s %7s %9s %6v\n"

func (r *report) printProvisionHeader(out io.Writer) {
	fmt.Fprintf(out, "\n"+provisionColumns, "WORKLOAD", "PROGRAM", "N", "BOUND", "BOUND/S", "WRITES", "OTHERS", "CPU ms", "DELETED/S", "LEFT")
}

// addProvision prints a round as it ends: writes and CPU time are those per claim.
func (r *report) addProvision(out io.Writer, result provisionRound) {
	r.Provision = append(r.Provision, result)
	fmt.Fprintf(out, provisionColumns, "provision", result.Program, result.N, result.Bound, decimals(0, result.PerSecond),
		decimals(2, result.WritesPerClaim), decimals(2, result.OthersPerClaim), decimals(2, result.CPUPerClaim),
		decimals(0, result.DeletedPerSecond), result.Left)
	if result.WritesPerClaim != writesPerClaim {
		for _, name := range result.Writes.names() {
			fmt.Fprintf(out, "%15s%s: %d\n", "", name, result.Writes[name])
		}
	}
}

// judgeProvision sets what was measured of provisioning beside what is wanted.
func (r *report) judgeProvision() {
	cpu := map[int]float64{}
	sizes := r.provisionSizes()
	for _, n := range sizes {
		rounds, bare := r.provisionsOf(managerName, n), r.provisionsOf(bareName, n)
		cpu[n] = median(each(rounds, func(round provisionRound) float64 { return float64(round.CPUPerClaim) }))
		r.judgeProvisionRounds(n, rounds)
		r.judgeProvisionSpeed(n, rounds, bare)
	}
	if len(sizes) > 1 && cpu[sizes[0]] > 0 {
		small, large := sizes[0], sizes[len(sizes)-1]
		r.atMost(fmt.Sprintf("provision: CPU per claim, n=%d to n=%d", large, small), cpu[large]/cpu[small], maxCPUGrowth, "x")
	}
}

// judgeProvisionRounds judges what must hold in every round.
func (r *report) judgeProvisionRounds(n int, rounds []provisionRound) {
	if len(rounds) == 0 {
		return
	}
	name := fmt.Sprintf("provision, n=%d", n)
	bound := slices.Min(each(rounds, func(round provisionRound) float64 { return float64(round.Bound) }))
	left := slices.Max(each(rounds, func(round provisionRound) float64 { return float64(round.Left) }))
	written := each(rounds, func(round provisionRound) float64 { return round.WritesPerClaim })
	least, most := slices.Min(written), slices.Max(written)
	r.add(name+": each claim bound", fmt.Sprint(n), fmt.Sprint(bound), bound == float64(n), true)
	r.add(name+": writes to claim and volume", fmt.Sprintf("exactly %d", writesPerClaim), fmt.Sprintf("%.3f to %.3f", least, most),
		least == writesPerClaim && most == writesPerClaim, true)
	r.add(name+": left when all is deleted", "0", fmt.Sprint(left), left == 0, true)
}

// judgeProvisionSpeed compares rounds with the bare client's that followed them.
func (r *report) judgeProvisionSpeed(n int, rounds, bare []provisionRound) {
	var ratios []float64
	for i := range min(len(rounds), len(bare)) {
		ratios = append(ratios, rounds[i].PerSecond/bare[i].PerSecond)
	}
	if len(ratios) == 0 {
		return
	}
	speed := func(round provisionRound) float64 { return round.PerSecond }
	ratio := median(ratios)
	measured := fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", ratio, median(each(rounds, speed)), median(each(bare, speed)))
	title := fmt.Sprintf("provision, n=%d: part of the bare writes' speed", n)
	r.add(title+", goal", fmt.Sprintf(">= %.2f", provisionGoal), measured, ratio >= provisionGoal, false)
	r.add(title+", gate", fmt.Sprintf(">= %.2f", provisionGate), measured, ratio >= provisionGate, true)
}

func (r *report) provisionsOf(program string, n int) []provisionRound {
	return slices.DeleteFunc(slices.Clone(r.Provision), func(round provisionRound) bool {
		return round.Program != program || round.N != n
	})
}

func (r *report) provisionSizes() []int {
	sizes := make([]int, 0, len(r.Provision))
	for _, round := range r.Provision {
		sizes = append(sizes, round.N)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func each[Round, Value any](rounds []Round, value func(Round) Value) []Value {
	values := make([]Value, 0, len(rounds))
	for _, round := range rounds {
		values = append(values, value(round))
	}
	return values
}
