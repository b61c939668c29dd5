package main

import (
	"strings"
	"testing"
)

func TestTargetsAreJudgedByMediansOfPairs(t *testing.T) {
	r := &report{}
	for _, speed := range []float64{100, 190, 185} { // the first round of each was disturbed
		r.Rounds = append(r.Rounds,
			round{Program: managerName, Workload: "identical", N: 2000, Bound: 2000, PerSecond: speed, WritesPerBind: 4, CPUPerBind: 1.5},
			round{Program: bareName, Workload: "identical", N: 2000, Bound: 2000, PerSecond: 200, WritesPerBind: 4})
	}
	r.judge()
	verdicts := map[string]bool{}
	for _, target := range r.Targets {
		verdicts[target.Name] = target.Met
	}
	for _, name := range []string{"identical, n=2000: part of the bare writes' speed, goal", "identical, n=2000: writes per bind"} {
		if !verdicts[name] {
			t.Errorf("%q is not met: %+v", name, r.Targets)
		}
	}
	if err := r.gates(); err != nil {
		t.Errorf("a gate is missed: %v", err)
	}
}

func TestAMissedGateIsNamed(t *testing.T) {
	for missed, change := range map[string]func(*round){
		"each claim bound": func(r *round) { r.Bound-- },
		"to its volume":    func(r *round) { r.Wrong++ },
		"writes per bind":  func(r *round) { r.WritesPerBind = 4.001 },
		"CPU per bind":     func(r *round) { r.CPUPerBind = 2.1 },
	} {
		for _, w := range workloads {
			result := round{Program: managerName, Workload: w.name, N: 500, Bound: 500, WritesPerBind: 4, CPUPerBind: 1}
			change(&result)
			r := &report{Rounds: []round{result}}
			r.judge()
			if err := r.gates(); err == nil || !strings.Contains(err.Error(), missed) {
				t.Errorf("%s, %s: %v", w.name, missed, err)
			}
		}
	}
}
