package main

import (
	"testing"
	"time"
)

func TestLatencyNamesTimesThatOccurred(t *testing.T) {
	var times []time.Duration
	for i := 200; i > 0; i-- {
		times = append(times, time.Duration(i)*time.Millisecond)
	}
	want := latency{P50: 100, P99: 198, Max: 200}
	if got := latencyOf(times); got != want {
		t.Errorf("of 1 to 200 ms: %v, want %v", got, want)
	}
	if got := latencyOf(times[:1]); got != (latency{P50: 200, P99: 200, Max: 200}) {
		t.Errorf("of one time: %v", got)
	}
	if got := latencyOf(nil); got != (latency{}) {
		t.Errorf("of no time: %v", got)
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 3: {5, 1, 3}, 2.5: {4, 1, 2, 3}} {
		if got := median(values); got != want {
			t.Errorf("median of %v is %v, want %v", values, got, want)
		}
	}
}
