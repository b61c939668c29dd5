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
}

// comparison is the rounds of one case, in the order in which they ran: those of the
// program, and those of what it is compared with, the bare client or the sidecars, each
// after one of the program's.
type comparison struct {
	of            string
	n             int
	rounds, bares []result
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
		if one.Program == bareName || one.Program == sidecarsName {
			all[i].bares = append(all[i].bares, one)
		} else {
			all[i].rounds = append(all[i].rounds, one)
		}
	}
	return slices.DeleteFunc(all, func(c *comparison) bool { return len(c.rounds) == 0 })
}

// ratio is the median of the program's values to those of the round after, of what it is
// compared with.
func (c *comparison) ratio(value func(result) float64) (ratio float64, measured bool) {
	var ratios []float64
	for i := range min(len(c.rounds), len(c.bares)) {
		ratios = append(ratios, value(c.rounds[i])/value(c.bares[i]))
	}
	return median(ratios), len(ratios) > 0
}

func (c *comparison) cpu() float64 {
	return median(each(c.rounds, func(r result) float64 { return float64(r.CPUEach) }))
}

func (r *report) want(name, wanted, measured string, met bool) {
	r.Targets = append(r.Targets, target{Name: name, Wanted: wanted, Measured: measured, Met: met})
}

func (r *report) gate(name, wanted, measured string, met bool) {
	r.Targets = append(r.Targets, target{Name: name, Wanted: wanted, Measured: measured, Met: met, Gate: true})
}

func (r *report) atMost(name string, measured, limit float64, unit string) {
	r.want(name, fmt.Sprintf("<= %g %s", limit, unit), fmt.Sprintf("%.4g %s", measured, unit), measured <= limit)
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
// aren't 0.
func (r *report) bareSpeed(name string, c *comparison, goal, gate float64) {
	speed := func(r result) float64 { return r.PerSecond }
	ratio, measured := c.ratio(speed)
	if !measured {
		return
	}
	name += ": part of the bare writes' speed"
	got := fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", ratio, median(each(c.rounds, speed)), median(each(c.bares, speed)))
	switch {
	case goal == 0:
		r.want(name, "", got, true)
	case gate == 0:
		r.want(name, fmt.Sprintf(">= %.2f", goal), got, ratio >= goal)
	default:
		r.want(name+", goal", fmt.Sprintf(">= %.2f", goal), got, ratio >= goal)
		r.gate(name+", gate", fmt.Sprintf(">= %.2f", gate), got, ratio >= gate)
	}
}

func (r *report) bareTime(name string, c *comparison, limit float64) {
	if ratio, measured := c.ratio(func(r result) float64 { return r.Seconds }); measured {
		r.atMost(name+": time, to that of the bare operations", ratio, limit, "x")
	}
}

func (r *report) cpuGrowth(name string, small, large *comparison) {
	if small != nil && large != nil && small.n < large.n && small.cpu() > 0 {
		r.atMost(fmt.Sprintf("%s, n=%d to n=%d", name, large.n, small.n), large.cpu()/small.cpu(), maxCPUGrowth, "x")
	}
}
