package main

import (
	"fmt"
	"slices"
)

// target is something that is wanted, and what it is. Only what was measured is
// judged. Where nothing is wanted, it is for information.
type target struct {
	Name, Wanted, Measured string
	Met                    bool
	Gate                   bool
	// Benchmark is what measures it.
	Benchmark string
	// Small says how little was measured, where that is too little to judge it: it is neither met nor missed.
	Small string `json:",omitempty"`
}

// from has a target judged only where enough was measured.
func (t *target) from(least, measured int, what string) {
	if t != nil && measured < least {
		t.Met, t.Small = false, fmt.Sprintf("judged from %d %s, not %d", least, what, measured)
	}
}

func (t *target) missed() bool { return !t.Met && t.Small == "" }

func (t *target) verdict() string {
	switch {
	case t.Small != "":
		return "too small"
	case t.Wanted == "":
		return "for information"
	case t.Met:
		return "met"
	case t.Gate:
		return "MISSED (gate)"
	default:
		return "MISSED"
	}
}

// comparison is the rounds of one case, in the order in which they ran: those of the
// program, and those of what it is compared with, the bare client or the sidecars, each
// after one of the program's. On a node there are those of a stock kubelet, too.
type comparison struct {
	of                     string
	n                      int
	rounds, bares, kubelet []result
}

func (r *report) comparisons(benchmark string) []*comparison {
	var all []*comparison
	for _, one := range r.Results {
		if one.Benchmark != benchmark {
			continue
		}
		i := slices.IndexFunc(all, func(c *comparison) bool { return c.of == one.Case && c.n == one.N })
		if i < 0 {
			i, all = len(all), append(all, &comparison{of: one.Case, n: one.N})
		}
		switch one.Program {
		case bareName, sidecarsName:
			all[i].bares = append(all[i].bares, one)
		case kubeletName:
			all[i].kubelet = append(all[i].kubelet, one)
		default:
			all[i].rounds = append(all[i].rounds, one)
		}
	}
	return slices.DeleteFunc(all, func(c *comparison) bool { return len(c.rounds) == 0 })
}

// ratio is the median of the program's values to those of the round after, of what it is
// compared with.
func (c *comparison) ratio(value func(result) float64) (ratio float64, measured bool) {
	return c.ratioTo(c.bares, value)
}

// ratioTo is the median of the program's values to those of others in the same turn.
func (c *comparison) ratioTo(others []result, value func(result) float64) (ratio float64, measured bool) {
	var ratios []float64
	for i := range min(len(c.rounds), len(others)) {
		ratios = append(ratios, value(c.rounds[i])/value(others[i]))
	}
	return median(ratios), len(ratios) > 0
}

// done is for how many the program did it, in all rounds that are compared.
func (c *comparison) done() int { return c.n * min(len(c.rounds), len(c.bares)) }

func (c *comparison) cpu() float64 {
	return median(each(c.rounds, func(r result) float64 { return float64(r.CPUEach) }))
}

func (r *report) want(name, wanted, measured string, met bool) *target {
	r.Targets = append(r.Targets, target{Name: name, Wanted: wanted, Measured: measured, Met: met, Benchmark: r.judging})
	return &r.Targets[len(r.Targets)-1]
}

func (r *report) gate(name, wanted, measured string, met bool) *target {
	t := r.want(name, wanted, measured, met)
	t.Gate = true
	return t
}

func (r *report) atMost(name string, measured, limit float64, unit string) *target {
	return r.want(name, fmt.Sprintf("<= %g %s", limit, unit), fmt.Sprintf("%.4g %s", measured, unit), measured <= limit)
}

func (r *report) allDone(name string, c *comparison) {
	right := slices.Min(each(c.rounds, func(r result) int { return r.Done - r.Wrong }))
	r.gate(name, fmt.Sprint(c.n), fmt.Sprint(right), right == c.n)
}

func (r *report) noneLeft(name string, c *comparison) {
	left := slices.Max(each(c.rounds, func(r result) int { return r.Left }))
	r.gate(name+": left when all is deleted", "0", fmt.Sprint(left), left == 0)
}

func (r *report) exactWrites(name string, c *comparison, wanted float64) {
	written := each(c.rounds, func(r result) float64 { return r.Writes })
	least, most := slices.Min(written), slices.Max(written)
	r.gate(name, fmt.Sprintf("exactly %g", wanted), fmt.Sprintf("%.3f to %.3f", least, most), least == wanted && most == wanted)
}

// bareSpeed wants a part of the bare client's speed, and demands another, where they
// aren't 0. It returns the last of these targets; nil if the bare client wasn't measured.
func (r *report) bareSpeed(name string, c *comparison, goal, gate float64) *target {
	speed := func(r result) float64 { return r.PerSecond }
	ratio, measured := c.ratio(speed)
	if !measured {
		return nil
	}
	r.bareCPU(name, c, func(r result) milliseconds { return r.AllEach })
	name += ": part of the bare writes' speed"
	got := fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", ratio, median(each(c.rounds, speed)), median(each(c.bares, speed)))
	last := r.want
	switch {
	case goal == 0:
		return r.want(name, "", got, true)
	case gate != 0:
		r.want(name+", goal", fmt.Sprintf(">= %.2f", goal), got, ratio >= goal).from(leastCompared, c.done(), "in all rounds")
		name, goal, last = name+", gate", gate, r.gate
	}
	t := last(name, fmt.Sprintf(">= %.2f", goal), got, ratio >= goal)
	t.from(leastCompared, c.done(), "in all rounds")
	return t
}

// bareDeletion wants a part of the speed at which the bare client's writes remove as many; nothing if these weren't measured.
func (r *report) bareDeletion(name string, c *comparison) {
	speed := func(r result) float64 { return r.DeletedPerSecond }
	if ratio, measured := c.ratio(speed); measured && speed(c.bares[0]) > 0 {
		got := fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", ratio, median(each(c.rounds, speed)), median(each(c.bares, speed)))
		r.bareCPU(name+": deleted", c, func(r result) milliseconds { return r.DeleteAllEach })
		r.want(name+": deleted, part of the bare writes' speed", fmt.Sprintf(">= %.2f", deleteGoal), got, ratio >= deleteGoal).
			from(leastCompared, c.done(), "in all rounds")
	}
}

// bareTime wants at most so many times the bare operations' time; nil if these weren't measured.
func (r *report) bareTime(name string, c *comparison, limit float64) *target {
	ratio, measured := c.ratio(func(r result) float64 { return r.Seconds })
	if !measured {
		return nil
	}
	r.bareCPU(name, c, func(r result) milliseconds { return r.AllEach })
	return r.atMost(name+": time, to that of the bare operations", ratio, limit, "x")
}

// bareCPU shows what each takes of the processors' time, of all programs, to what it takes where the bare client does it.
func (r *report) bareCPU(name string, c *comparison, of func(result) milliseconds) {
	cpu := func(r result) float64 { return float64(of(r)) }
	if ratio, measured := c.ratio(cpu); measured && cpu(c.bares[0]) > 0 {
		got := fmt.Sprintf("%.2f x (%.1f ms, %.1f ms)", ratio, median(each(c.rounds, cpu)), median(each(c.bares, cpu)))
		r.want(name+": CPU of all programs, to the bare client's", "", got, true)
	}
}

// kubeletTime shows how long the program takes, to a stock kubelet's time, if that was measured.
func (r *report) kubeletTime(name string, c *comparison) {
	seconds := func(r result) float64 { return r.Seconds }
	if ratio, measured := c.ratioTo(c.kubelet, seconds); measured {
		got := fmt.Sprintf("%.2f x (%.2f s, %.2f s)", ratio, median(each(c.rounds, seconds)), median(each(c.kubelet, seconds)))
		r.want(name+": time, to that of a stock kubelet", "", got, true)
	}
}

// cpuGrowth wants that what each costs is the same at the largest number as at the smallest, which is a tenth of it.
func (r *report) cpuGrowth(name string, small, large *comparison) {
	if small != nil && large != nil && small.n < large.n && small.cpu() > 0 {
		r.atMost(fmt.Sprintf("%s, n=%d to n=%d", name, large.n, small.n), large.cpu()/small.cpu(), maxCPUGrowth, "x").
			from(leastGrowth, large.n/small.n, "times as many")
	}
}
