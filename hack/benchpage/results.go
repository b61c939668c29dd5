package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// results are the part of what make bench writes that the page shows.
type results struct {
	Time    time.Time
	Version string
	CPUs    int
	Load    string
	// Quick is a run of --quick, and LeftOut what a run doesn't have, and why.
	Quick   bool
	LeftOut []struct{ Name, Why string }
	Results []result
	Events  []event
	Targets []target
}

type result struct {
	Benchmark, Case, Program string
	N                        int
	PerSecond                float64
	Latency                  struct{ P50, P99, Max float64 }
	CPUEach                  float64
}

// event is what an event on one node costs in a cluster of some size.
type event struct {
	Nodes, Volumes int
	Cycle, Beat    float64
}

type target struct {
	Name, Wanted, Measured string
	Met, Gate              bool
	// Small says how little was measured, where that is too little to judge the target.
	Small string
}

// verdict is what became of a target.
func (t target) verdict() string {
	switch {
	case t.Small != "":
		return "too small: " + t.Small
	case t.Wanted == "":
		return "for information"
	case t.Met:
		return "met"
	default:
		return "missed"
	}
}

func read(path string) (*results, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := &results{}
	if err := json.Unmarshal(content, read); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return read, nil
}

// group is the results of one benchmark that belong into one plot, in the order in which they came.
type group struct {
	name    string
	results []result
}

// groupBy groups results by a name.
func groupBy(all []result, name func(result) string) []group {
	var groups []group
	index := map[string]int{}
	for _, one := range all {
		of := name(one)
		at, known := index[of]
		if !known {
			at = len(groups)
			index[of] = at
			groups = append(groups, group{name: of})
		}
		groups[at].results = append(groups[at].results, one)
	}
	return groups
}
