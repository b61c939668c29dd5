package main

import (
	"fmt"
	"io"
	"slices"
)

const (
	attachColumns = "%-14s %-8s %8v %8s %8s %7s %7s %7s\n"

	// attachGoal is which part of the bare client's speed is wanted.
	attachGoal = 0.80
	// maxAttachWrites are wanted at most for each attach, and for each detach.
	maxAttachWrites = 3
)

func (r *report) printAttachHeader(out io.Writer) {
	fmt.Fprintf(out, "\n"+attachColumns, "PHASE", "PROGRAM", "VOLUMES", "SECONDS", "PER SEC", "WRITES", "OTHERS", "CPU ms")
}

// addAttach prints a phase as it ends: writes and CPU time are those per volume.
func (r *report) addAttach(out io.Writer, result attachPhase) {
	r.Attach = append(r.Attach, result)
	fmt.Fprintf(out, attachColumns, result.Phase, result.Program, result.Volumes, decimals(2, result.Seconds), decimals(0, result.PerSecond),
		decimals(2, result.WritesPerVolume), decimals(2, result.OthersPerVolume), decimals(2, result.CPUPerVolume))
	if result.Program != bareName {
		for _, name := range result.Writes.names() {
			fmt.Fprintf(out, "%15s%s: %d\n", "", name, result.Writes[name])
		}
	}
}

// judgeAttach sets what was measured of attaching beside what is wanted.
func (r *report) judgeAttach() {
	for _, phase := range []phase{attaching, moving, detaching} {
		rounds, bare := r.attachOf(subjectOf, phase), r.attachOf(isBare, phase)
		if len(rounds) == 0 || len(rounds) > len(bare) {
			continue
		}
		var ratios []float64
		for i := range rounds {
			ratios = append(ratios, rounds[i].PerSecond/bare[i].PerSecond)
		}
		speed := func(phases []attachPhase) float64 {
			return median(each(phases, func(p attachPhase) float64 { return p.PerSecond }))
		}
		name := fmt.Sprintf("%s, %d volumes", phase, rounds[0].Volumes)
		ratio := median(ratios)
		r.add(name+": part of the bare writes' speed", fmt.Sprintf(">= %.2f", attachGoal),
			fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", ratio, speed(rounds), speed(bare)), ratio >= attachGoal, false)
		limit := float64(maxAttachWrites)
		if phase == moving {
			limit *= 2
		}
		most := slices.Max(each(rounds, func(p attachPhase) float64 { return p.WritesPerVolume }))
		r.add(name+": writes per volume", fmt.Sprintf("<= %.0f", limit), fmt.Sprintf("%.2f", most), most <= limit, true)
	}
}

func (r *report) attachOf(program func(string) bool, phase phase) []attachPhase {
	return slices.DeleteFunc(slices.Clone(r.Attach), func(p attachPhase) bool { return !program(p.Program) || p.Phase != phase })
}

const eventColumns = "%-14s %7v %8v %9s %9s\n"

// maxEventGrowth is how many times as much what happens on a node may cost among many
// nodes as among few, with as many volumes: flat, but for what the machine itself varies.
const maxEventGrowth = 1.2

func (r *report) printEventHeader(out io.Writer) {
	fmt.Fprintf(out, "\n"+eventColumns, "NODE EVENT", "NODES", "VOLUMES", "CYCLE ms", "BEAT ms")
}

func (r *report) addEvent(out io.Writer, cost eventCost) {
	r.Events = append(r.Events, cost)
	fmt.Fprintf(out, eventColumns, "", cost.Nodes, cost.Volumes, decimals(2, cost.Cycle), decimals(3, cost.Beat))
}

// judgeEvents compares clusters of many and of few nodes, and tells what volumes cost.
func (r *report) judgeEvents() {
	if len(r.Events) < len(eventSizes) {
		return
	}
	small, few, many := r.Events[0], r.Events[1], r.Events[2]
	r.atMost(fmt.Sprintf("a pod comes and goes: CPU, %d nodes to %d", many.Nodes, few.Nodes), float64(many.Cycle/few.Cycle), maxEventGrowth, "x")
	r.add(fmt.Sprintf("a pod comes and goes: CPU, %d volumes to %d", few.Volumes, small.Volumes), "",
		fmt.Sprintf("%.1f x", float64(few.Cycle/small.Cycle)), true, false)
}
