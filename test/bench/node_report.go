package main

import (
	"fmt"
	"io"
	"slices"
)

const (
	nodeColumns = "%-10s %-8s %-11s %6v %8v %8s %8s %8s %9s %9s\n"

	// maxNodeTime is how many times as long as the bare operations it may take.
	maxNodeTime = 1.2
	// maxIdleCPU is the part of a core that an agent with nothing to do may use.
	maxIdleCPU = 0.005
)

func (r *report) printNodeHeader(out io.Writer) {
	fmt.Fprintf(out, "\n"+nodeColumns, "STORY", "PHASE", "PROGRAM", "PODS", "VOLUMES", "SECONDS", "P50 ms", "P99 ms", "REQUESTS", "CPU ms")
}

// addNode prints a phase as it ends: requests and CPU time are those per pod.
func (r *report) addNode(out io.Writer, result nodeRound) {
	r.Node = append(r.Node, result)
	pods := float64(result.Pods)
	fmt.Fprintf(out, nodeColumns, result.Story, result.Phase, result.Program, result.Pods, result.Volumes, decimals(3, result.Seconds),
		decimals(0, result.Latency.P50), decimals(0, result.Latency.P99),
		decimals(1, float64(result.Requests.total())/pods), decimals(1, float64(result.CPU)/pods))
}

// judgeNode sets what was measured of mounting beside what is wanted.
func (r *report) judgeNode() {
	for _, story := range nodeStories {
		for _, phase := range []string{mounting, unmounting} {
			agent, bare := r.nodeOf(subjectOf, story.name, phase), r.nodeOf(isBare, story.name, phase)
			var ratios []float64
			for i := range min(len(agent), len(bare)) {
				ratios = append(ratios, agent[i].Seconds/bare[i].Seconds)
			}
			if len(ratios) > 0 {
				r.atMost(fmt.Sprintf("node, %s, %s: time, to that of the bare operations", story.name, phase), median(ratios), maxNodeTime, "x")
			}
		}
	}
	if idle := r.NodeIdle; idle != nil {
		r.atMost(fmt.Sprintf("node, %d pods with %d volumes each, idle: part of a core", idle.Pods, idle.Volumes), idle.PartOfCore, maxIdleCPU, "")
	}
}

func (r *report) nodeOf(program func(string) bool, story, phase string) []nodeRound {
	return slices.DeleteFunc(slices.Clone(r.Node), func(round nodeRound) bool {
		return !program(round.Program) || round.Story != story || round.Phase != phase
	})
}
