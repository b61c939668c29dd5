package main

import (
	"io"
	"slices"
	"testing"
	"time"
)

func TestASlowDriverIsSeenBesideAFastOne(t *testing.T) {
	seen, start := newBound(), time.Now()
	seen.lastOf["a"] = start.Add(time.Second)
	if spread := seen.spread(start); spread != 0 {
		t.Errorf("one alone has the spread %v", spread)
	}
	seen.lastOf["b"], seen.lastOf["c"] = start.Add(3*time.Second), start.Add(2*time.Second)
	if spread := seen.spread(start); spread != 3 {
		t.Errorf("the spread is %v", spread)
	}
}

func TestAManagerIsComparedWithSidecarsThatBoundAll(t *testing.T) {
	missed := func(change func(*result)) (names []string) {
		sidecars := result{Benchmark: "csi", Case: "1", Program: sidecarsName, N: 1000, Done: 1000, PerSecond: 50, PeakMiB: 100, Requests: requests{"GET pods": 9}}
		change(&sidecars)
		r := &report{out: io.Discard, Results: []result{
			{Benchmark: "csi", Case: "1", Program: managerName, N: 1000, Done: 1000, PerSecond: 100, PeakMiB: 50, Requests: requests{"GET pods": 7}}, sidecars,
		}}
		r.judge()
		for _, target := range r.Targets {
			if !target.Met {
				names = append(names, target.Name)
			}
		}
		return names
	}
	for _, tc := range []struct {
		change func(*result)
		missed []string
	}{
		{func(*result) {}, nil},
		{func(sidecars *result) { sidecars.Done-- }, []string{"csi, drivers=1, n=1000: each claim bound by the sidecars"}},
		{func(sidecars *result) { sidecars.PerSecond = 200 }, []string{"csi, drivers=1, n=1000: speed, to that of the sidecars"}},
		{func(sidecars *result) { sidecars.PeakMiB = 40 }, []string{"csi, drivers=1, n=1000: memory, to that of the sidecars"}},
	} {
		if got := missed(tc.change); !slices.Equal(got, tc.missed) {
			t.Errorf("%v are missed, not %v", got, tc.missed)
		}
	}
}

func TestSeveralDriversAreComparedWithOne(t *testing.T) {
	r := &report{out: io.Discard, Results: []result{
		{Benchmark: "csi", Case: "1", Program: managerName, N: 1000, Done: 1000, PeakMiB: 100},
		{Benchmark: "csi", Case: "10", Program: managerName, N: 1000, Done: 1000, PeakMiB: 130, Spread: 1.5},
	}}
	r.judge()
	var missed []string
	for _, target := range r.Targets {
		if !target.Met {
			missed = append(missed, target.Name)
		}
	}
	wanted := []string{"csi, drivers=10, n=1000: the slowest driver's time, to the fastest's", "csi, drivers=10, n=1000: memory, to that with one driver"}
	if !slices.Equal(missed, wanted) {
		t.Errorf("%v are missed, not %v", missed, wanted)
	}
}
