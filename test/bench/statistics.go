package main

import (
	"fmt"
	"slices"
	"time"
)

// latency is how long it took until claims were bound.
type latency struct {
	P50, P99, Max milliseconds
}

// milliseconds is a time as people and JSON read it.
type milliseconds float64

func inMilliseconds(d time.Duration) milliseconds { return milliseconds(d.Seconds() * 1000) }

// latencyOf sums up many times.
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

func (l latency) String() string {
	return fmt.Sprintf("p50 %.0f ms, p99 %.0f ms, max %.0f ms", l.P50, l.P99, l.Max)
}
