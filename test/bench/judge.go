package main

import (
	"fmt"
	"slices"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	writesPerBind   = 4
	writesPerClaim  = 5
	maxAttachWrites = 3

	// Milliseconds of CPU time for each bind, and until a volume that appears is bound.
	maxCPUPerBind = 2.0
	maxLateVolume = 100

	maxCPUGrowth     = 1.2
	maxCrowdSlowdown = 2.0
	maxBytesPerPair  = 3 << 10
	// maxReady is in seconds after a bare client has the same lists, and maxScaleMiB of RAM.
	maxReady    = 30
	maxScaleMiB = 600
	// maxTakeover is in seconds. A lease lasts 15.
	maxTakeover = 20
	growthFrom  = 1000
	growthTo    = 10 * growthFrom

	// Parts of the bare client's speed.
	provisionGoal = 0.85
	provisionGate = 0.70
	deleteGoal    = 0.80
	attachGoal    = 0.80

	// csiGoal is the part of external-provisioner's speed. maxSpread and maxDriverMemory are
	// for several drivers: the slowest to the fastest, and the memory to that with one.
	csiGoal         = 0.80
	maxSpread       = 1.2
	maxDriverMemory = 1.2

	// maxNodeTime, and the times of both layouts of local volumes, are how many times as long as the bare operations it
	// may take.
	maxDirectoryTime = 1.25
	maxImageTime     = 1.4
	maxNodeTime      = 1.25
	// maxIdleCPU is a part of a core, maxRestart in seconds.
	maxIdleCPU  = 0.002
	maxAgentMiB = 60
	maxRestart  = 2
	// maxEventGrowth is how many times as much what happens on a node may cost among many
	// nodes as among few, with as many volumes: flat, but for what the machine itself varies.
	maxEventGrowth = 1.2
	// maxAttachedGrowth is how many times as much it may cost among many attached volumes.
	maxAttachedGrowth = 1.3
)

// What is judged only from so many on. Below, what programs need to start decides, or chance does.
const (
	// leastCompared are claims or volumes, of all rounds that are compared, and leastCycles are how often pods came and went on a node.
	leastCompared = 1000
	leastCycles   = 3 * nodeCycles
	leastGrowth   = 10
	leastBound    = 2000
	leastLates    = scaleSamples
	leastScale    = 10000
	leastTakeover = 10000
	leastIdle     = 30 * time.Second
)

// limits are which part of the bare client's speed is the goal, and which the
// gate, at a number of pairs.
var limits = map[int]struct{ goal, gate float64 }{
	leastBound: {0.90, 0.80},
	10000:      {0.85, 0.75},
}

func (r *report) judge() {
	for _, of := range []struct {
		benchmark string
		judge     func()
	}{
		{"bind", r.judgeBind},
		{"late-volume", r.judgeLateVolume},
		{"crowd", r.judgeCrowd},
		{"idle", r.judgeIdle},
		{"scale", r.judgeScale},
		{"takeover", r.judgeTakeover},
		{"provision", r.judgeProvision},
		{"csi", r.judgeCSI},
		{"local", r.judgeLocal},
		{"attach", r.judgeAttach},
		{"node", r.judgeNode},
		{"node-event", r.judgeEvents},
	} {
		r.judging = of.benchmark
		of.judge()
	}
}

func (r *report) judgeLateVolume() {
	if got := r.LateVolume; got != nil {
		name := fmt.Sprintf("claim waits, its volume appears, %d times: bound after, max", r.LateSamples)
		r.atMost(name, float64(got.Max), maxLateVolume, "ms").from(leastLates, r.LateSamples, "times")
	}
}

func (r *report) judgeCrowd() {
	if r.Crowd != nil {
		r.atMost("p99 beside unmatchable claims, to p99 without", r.Crowd.Slowdown, maxCrowdSlowdown, "x")
	}
}

func (r *report) judgeIdle() {
	if r.Idle != nil {
		r.atMost("live heap per idle pair", r.Idle.BytesPerPair, maxBytesPerPair, "bytes")
	}
}

func (r *report) judgeTakeover() {
	if got := r.Takeover; got != nil {
		name := fmt.Sprintf("leader killed beside %d claims: later ones, bound after, p99", got.Waiting)
		r.atMost(name, float64(got.After.P99)/1000, maxTakeover, "s").from(leastTakeover, got.Waiting, "claims")
	}
}

func (r *report) judgeLocal() {
	for _, c := range r.comparisons("local") {
		name := fmt.Sprintf("local, %s, n=%d", c.of, c.n)
		r.allDone(name+": each claim bound", c)
		r.noneLeft(name, c)
		limit := maxDirectoryTime
		if c.of == string(stowagev1alpha1.LayoutImage) {
			limit = maxImageTime
		}
		r.bareTime(name, c, limit).from(leastCompared, c.done(), "in all rounds")
	}
}

func (r *report) judgeNode() {
	for _, c := range r.comparisons("node") {
		r.bareTime("node, "+c.of, c, maxNodeTime).from(leastCycles, min(len(c.rounds), len(c.bares)), "times")
		r.kubeletTime("node, "+c.of, c)
	}
	if idle := r.NodeIdle; idle != nil {
		name := fmt.Sprintf("node, %d pods with %d volumes each, idle: ", idle.Pods, idle.Volumes)
		least, passed := int(leastIdle.Seconds()), int(idle.Seconds)
		r.atMost(name+"part of a core", idle.PartOfCore, maxIdleCPU, "").from(least, passed, "seconds")
		r.atMost(name+"RAM at most", idle.PeakMiB, maxAgentMiB, "MiB").from(least, passed, "seconds")
		r.atMost(name+"at work after a restart", idle.Restart.Seconds, maxRestart, "s").from(least, passed, "seconds")
	}
}

// judgeBind judges what must hold in every round: that all is bound, right, in four
// writes, and how much CPU that takes; and the speed, where the bare client ran.
func (r *report) judgeBind() {
	var small, large *comparison
	for _, c := range r.comparisons("bind") {
		name := fmt.Sprintf("%s, n=%d", c.of, c.n)
		r.allDone(name+": each claim bound, to its volume", c)
		r.exactWrites(name+": writes per bind", c, writesPerBind)
		r.gate(name+": CPU per bind, median", fmt.Sprintf("<= %.0f ms", maxCPUPerBind), fmt.Sprintf("%.2f ms", c.cpu()), c.cpu() <= maxCPUPerBind)
		if c.n < leastBound {
			r.bareSpeed(name, c, limits[leastBound].goal, 0).from(leastBound, c.n, "pairs")
		} else {
			r.bareSpeed(name, c, limits[c.n].goal, limits[c.n].gate)
		}
		switch {
		case c.of != workloads[0].name:
		case c.n == growthFrom:
			small = c
		case c.n == growthTo:
			large = c
		}
	}
	r.cpuGrowth("CPU per bind", small, large)
}

func (r *report) judgeScale() {
	for _, got := range r.Scales {
		name := fmt.Sprintf("scale, %d pairs: ", got.Pairs)
		r.atMost(name+"ready, after the lists", float64(got.Ready-got.Lists), maxReady, "s").from(leastScale, got.Pairs, "pairs")
		r.atMost(name+"RAM at most", got.PeakMiB, maxScaleMiB, "MiB").from(leastScale, got.Pairs, "pairs")
		r.atMost(name+"claim waits, its volume appears: max", float64(got.Late.Max), maxLateVolume, "ms").from(leastScale, got.Pairs, "pairs")
		r.atMost(name+"a claim with a volume: max", float64(got.Bind.Max), maxLateVolume, "ms").from(leastScale, got.Pairs, "pairs")
	}
}

func (r *report) judgeProvision() {
	all := r.comparisons("provision")
	for _, c := range all {
		name := fmt.Sprintf("provision, n=%d", c.n)
		r.allDone(name+": each claim bound", c)
		r.exactWrites(name+": writes to claim and volume", c, writesPerClaim)
		r.noneLeft(name, c)
		r.bareSpeed(name, c, provisionGoal, provisionGate)
		r.bareDeletion(name, c)
	}
	if len(all) > 0 {
		r.cpuGrowth("provision: CPU per claim", all[0], all[len(all)-1])
	}
}

// judgeCSI compares the manager with the sidecars, and several drivers with one.
func (r *report) judgeCSI() {
	var one *comparison
	for _, c := range r.comparisons("csi") {
		name := fmt.Sprintf("csi, drivers=%s, n=%d", c.of, c.n)
		r.allDone(name+": each claim bound", c)
		r.noneLeft(name, c)
		if faster, measured := c.ratio(func(r result) float64 { return r.PerSecond }); measured {
			bound := slices.Min(each(c.bares, func(r result) int { return r.Done }))
			r.gate(name+": each claim bound by the sidecars", fmt.Sprint(c.n), fmt.Sprint(bound), bound == c.n)
			r.want(name+": speed, to that of the sidecars", fmt.Sprintf(">= %.2f x", csiGoal), fmt.Sprintf("%.2f x", faster), faster >= csiGoal).from(leastCompared, c.done(), "in all rounds")
			asked, _ := c.ratio(func(r result) float64 { return float64(r.Requests.total()) })
			r.atMost(name+": requests, to those of the sidecars", asked, 1, "x").from(leastCompared, c.done(), "in all rounds")
			held, _ := c.ratio(func(r result) float64 { return r.PeakMiB })
			r.atMost(name+": memory, to that of the sidecars", held, 1, "x").from(leastCompared, c.done(), "in all rounds")
		}
		if spread := c.rounds[0].Spread; spread > 0 {
			r.atMost(name+": the slowest driver's time, to the fastest's", spread, maxSpread, "x").from(leastCompared, c.n, "claims")
		}
		if one != nil && one.n == c.n && one.of != c.of {
			r.atMost(name+": memory, to that with one driver", c.rounds[0].PeakMiB/one.rounds[0].PeakMiB, maxDriverMemory, "x").from(leastCompared, c.n, "claims")
		}
		one = c
	}
}

func (r *report) judgeAttach() {
	for _, c := range r.comparisons("attach") {
		name := fmt.Sprintf("%s, %d volumes", c.of, c.n)
		r.bareSpeed(name, c, attachGoal, 0)
		limit := float64(maxAttachWrites)
		if c.of == string(moving) {
			limit *= 2
		}
		most := slices.Max(each(c.rounds, func(r result) float64 { return r.Writes }))
		r.gate(name+": writes per volume", fmt.Sprintf("<= %.0f", limit), fmt.Sprintf("%.2f", most), most <= limit)
	}
}

func (r *report) judgeEvents() {
	if len(r.Events) < len(eventSizes) {
		return
	}
	small, few, many := r.Events[0], r.Events[1], r.Events[2]
	r.atMost(fmt.Sprintf("a pod comes and goes: CPU, %d nodes to %d", many.Nodes, few.Nodes), float64(many.Cycle/few.Cycle), maxEventGrowth, "x")
	for _, large := range append([]eventCost{few}, r.Events[len(eventSizes):]...) {
		r.atMost(fmt.Sprintf("a pod comes and goes: CPU, %d volumes to %d", large.Volumes, small.Volumes), float64(large.Cycle/small.Cycle), maxAttachedGrowth, "x")
	}
}
