package main

import (
	"fmt"
	"slices"
)

const (
	writesPerBind    = 4
	maxCPUPerBind    = 2.0
	maxCPUGrowth     = 1.2
	maxLateVolume    = 100
	maxCrowdSlowdown = 2.0
	maxBytesPerPair  = 8 << 10
	writesPerClaim   = 5
	provisionGoal    = 0.80
	provisionGate    = 0.70
	growthFrom       = 1000
	growthTo         = 10 * growthFrom
)

// limits are which part of the bare client's speed is the goal, and which the
// gate, at a number of pairs.
var limits = []struct {
	n          int
	goal, gate float64
}{
	{2000, 0.90, 0.80},
	{10000, 0.85, 0.75},
}

// target is something that is wanted, and what it is. Only what was measured is
// judged. Where nothing is wanted, it is for information.
type target struct {
	Name, Wanted, Measured string
	Met                    bool
	// Gate targets make --gate fail.
	Gate bool
}

// judge sets what was measured beside what is wanted.
func (r *report) judge() {
	for _, n := range r.sizes() {
		r.judgeRounds(n)
		r.judgeSpeed(n)
	}
	r.judgeGrowth()
	if r.LateVolume != nil {
		r.atMost("claim waits, its volume appears: bound after, max", float64(r.LateVolume.Max), maxLateVolume, "ms")
	}
	if r.Crowd != nil {
		r.atMost("p99 beside unmatchable claims, to p99 without", r.Crowd.Slowdown, maxCrowdSlowdown, "x")
	}
	if r.Idle != nil {
		r.atMost("live heap per idle pair", r.Idle.BytesPerPair, maxBytesPerPair, "bytes")
	}
	r.judgeProvision()
	r.judgeLocal()
	r.judgeAttach()
	r.judgeNode()
	r.judgeEvents()
}

// judgeRounds judges what must hold in every round: that all is bound, right, in
// four writes, and how much CPU that takes.
func (r *report) judgeRounds(n int) {
	for _, w := range workloads {
		rounds := r.of(subjectOf, w.name, n)
		if len(rounds) == 0 {
			continue
		}
		name := fmt.Sprintf("%s, n=%d", w.name, n)
		right, most, least := n, 0.0, float64(writesPerBind)
		var cpu []float64
		for _, round := range rounds {
			right = min(right, round.Bound-round.Wrong)
			most, least = max(most, round.WritesPerBind), min(least, round.WritesPerBind)
			cpu = append(cpu, float64(round.CPUPerBind))
		}
		r.add(name+": each claim bound, to its volume", fmt.Sprintf("%d", n), fmt.Sprintf("%d", right), right == n, true)
		r.add(name+": writes per bind", fmt.Sprintf("exactly %d", writesPerBind), fmt.Sprintf("%.3f to %.3f", least, most),
			most == writesPerBind && least == writesPerBind, true)
		r.add(name+": CPU per bind, median", fmt.Sprintf("<= %.0f ms", maxCPUPerBind),
			fmt.Sprintf("%.2f ms", median(cpu)), median(cpu) <= maxCPUPerBind, true)
	}
}

// judgeSpeed compares rounds with the bare client's that followed them.
func (r *report) judgeSpeed(n int) {
	name := workloads[0].name
	subject, bare := r.of(subjectOf, name, n), r.of(isBare, name, n)
	var ratios []float64
	for i := range min(len(subject), len(bare)) {
		ratios = append(ratios, subject[i].PerSecond/bare[i].PerSecond)
	}
	if len(ratios) == 0 {
		return
	}
	ratio := median(ratios)
	measured := fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", ratio, median(speeds(subject)), median(speeds(bare)))
	title := fmt.Sprintf("%s, n=%d: part of the bare writes' speed", name, n)
	for _, limit := range limits {
		if limit.n == n {
			r.add(title+", goal", fmt.Sprintf(">= %.2f", limit.goal), measured, ratio >= limit.goal, false)
			r.add(title+", gate", fmt.Sprintf(">= %.2f", limit.gate), measured, ratio >= limit.gate, true)
			return
		}
	}
	r.add(title, "", measured, true, false)
}

func (r *report) judgeGrowth() {
	cpuAt := func(n int) float64 {
		var cpu []float64
		for _, round := range r.of(subjectOf, workloads[0].name, n) {
			cpu = append(cpu, float64(round.CPUPerBind))
		}
		return median(cpu)
	}
	if small, large := cpuAt(growthFrom), cpuAt(growthTo); small > 0 && large > 0 {
		r.atMost(fmt.Sprintf("CPU per bind, n=%d to n=%d", growthTo, growthFrom), large/small, maxCPUGrowth, "x")
	}
}

func (r *report) atMost(name string, measured, limit float64, unit string) {
	r.add(name, fmt.Sprintf("<= %g %s", limit, unit), fmt.Sprintf("%.4g %s", measured, unit), measured <= limit, false)
}

func (r *report) add(name, wanted, measured string, met, gate bool) {
	r.Targets = append(r.Targets, target{Name: name, Wanted: wanted, Measured: measured, Met: met, Gate: gate})
}

func subjectOf(program string) bool { return program != bareName }

func isBare(program string) bool { return program == bareName }

// of are the rounds of a program in a workload, in the order in which they ran.
func (r *report) of(program func(string) bool, workload string, n int) []round {
	var rounds []round
	for _, round := range r.Rounds {
		if program(round.Program) && round.Workload == workload && round.N == n {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

func (r *report) sizes() []int {
	var sizes []int
	for _, round := range r.Rounds {
		sizes = append(sizes, round.N)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func speeds(rounds []round) []float64 {
	values := make([]float64, 0, len(rounds))
	for _, round := range rounds {
		values = append(values, round.PerSecond)
	}
	return values
}
