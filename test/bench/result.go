package main

import (
	"fmt"
	"slices"
	"time"
)

// result is what came out when one program did one thing once: what doesn't apply to a
// benchmark is left out.
type result struct {
	Benchmark, Case, Program string
	// N is of how many claims, volumes or pods, and Done for how many it was done.
	N, Done            int
	Wrong              int `json:",omitempty"`
	Volumes            int `json:",omitempty"`
	Seconds, PerSecond float64
	Latency            latency
	// Spread is how many times as long the slowest class of claims took as the fastest.
	Spread float64 `json:",omitempty"`
	// Requests are all that the API server answered in that time, by verb and resource, reads
	// too. Writes are those, for each that was done, which the work consists of, and
	// Others the rest of the writes; failed ones count.
	Requests       requests
	Writes, Others float64
	// CPU is the time of each program since it started; what programs that it runs need,
	// mkfs, is left out. CPUEach is that of all programs for each that was done, without
	// their start.
	CPU     map[string]milliseconds
	CPUEach milliseconds
	// AllEach is that of everything until the last was done, for each: of the API server, etcd and this program, too, and of what
	// programs run. Where programs are started for it, it has their start, but for what the manager alone takes for it.
	AllEach milliseconds
	PeakMiB float64
	// DeletedPerSecond is how fast all of it was removed, and DeleteRequests what that
	// took; Left is how much of it remained.
	// DeleteAllEach is as AllEach.
	DeletedPerSecond float64      `json:",omitempty"`
	DeleteAllEach    milliseconds `json:",omitempty"`
	DeleteRequests   requests     `json:",omitempty"`
	Left             int
}

func (r *result) took(done int, all time.Duration) {
	r.Done, r.Seconds = done, all.Seconds()
	if done > 0 {
		r.PerSecond = float64(r.Done) / r.Seconds
	}
}

// wrote sets what was asked of the API server; of the writes, those to some resources, or
// all, are the work.
func (r *result) wrote(answered requests, resources ...string) {
	r.Requests = answered
	if r.Done > 0 {
		writes := answered.writes()
		r.Writes = float64(writes.total(resources...)) / float64(r.Done)
		r.Others = float64(writes.total())/float64(r.Done) - r.Writes
	}
}

func (r *result) used(now usage, before time.Duration) {
	r.CPU, r.PeakMiB = now.each, float64(now.peak)/(1<<20)
	if r.Done > 0 {
		r.CPUEach = inMilliseconds(now.cpu-before) / milliseconds(r.Done)
	}
}

type latency struct {
	P50, P99, Max milliseconds
}

// milliseconds is a time as people and JSON read it.
type milliseconds float64

func inMilliseconds(d time.Duration) milliseconds { return milliseconds(d.Seconds() * 1000) }

func latencyOf(times []time.Duration) latency {
	if len(times) == 0 {
		return latency{}
	}
	sorted := slices.Sorted(slices.Values(times))
	return latency{
		P50: inMilliseconds(percentile(sorted, 50)),
		P99: inMilliseconds(percentile(sorted, 99)),
		Max: inMilliseconds(sorted[len(sorted)-1]),
	}
}

func (l latency) String() string {
	return fmt.Sprintf("p50 %.0f ms, p99 %.0f ms, max %.0f ms", l.P50, l.P99, l.Max)
}

// percentile is the smallest of sorted values that at least p percent of them
// don't exceed.
func percentile[T any](sorted []T, p int) T {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

// median of an even number of values is the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func each[From, To any](all []From, value func(From) To) []To {
	values := make([]To, 0, len(all))
	for _, one := range all {
		values = append(values, value(one))
	}
	return values
}
