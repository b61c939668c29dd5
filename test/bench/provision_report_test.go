package main

import (
	"strings"
	"testing"
)

func TestProvisioningIsJudgedByMediansOfPairs(t *testing.T) {
	r := &report{}
	for _, speed := range []float64{50, 90, 85} { // the first round was disturbed
		r.Provision = append(r.Provision,
			provisionRound{Program: managerName, N: 500, Bound: 500, PerSecond: speed, WritesPerClaim: 5},
			provisionRound{Program: bareName, N: 500, Bound: 500, PerSecond: 100, WritesPerClaim: 5})
	}
	r.judge()
	for _, target := range r.Targets {
		if !target.Met {
			t.Errorf("%+v is not met", target)
		}
	}
	if len(r.Targets) != 5 {
		t.Errorf("%d targets are judged", len(r.Targets))
	}
}

func TestAMissedGateOfProvisioningIsNamed(t *testing.T) {
	for missed, change := range map[string]func(*provisionRound){
		"each claim bound":       func(r *provisionRound) { r.Bound-- },
		"writes to claim":        func(r *provisionRound) { r.WritesPerClaim = 5.01 },
		"left when all":          func(r *provisionRound) { r.Left++ },
		"part of the bare write": func(r *provisionRound) { r.PerSecond = 60 },
	} {
		result := provisionRound{Program: managerName, N: 500, Bound: 500, PerSecond: 100, WritesPerClaim: 5}
		change(&result)
		r := &report{Provision: []provisionRound{result, {Program: bareName, N: 500, Bound: 500, PerSecond: 100}}}
		r.judge()
		if err := r.gates(); err == nil || !strings.Contains(err.Error(), missed) {
			t.Errorf("%s: %v", missed, err)
		}
	}
}
