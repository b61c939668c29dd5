package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

// bindRounds are one of a program and one of the bare client, of the workload identical.
func bindRounds(speed float64) []result {
	return []result{
		{Benchmark: "bind", Case: "identical", Program: managerName, N: 2000, Done: 2000, PerSecond: speed, Writes: 4, CPUEach: 1.5},
		{Benchmark: "bind", Case: "identical", Program: bareName, N: 2000, Done: 2000, PerSecond: 200, Writes: 4},
	}
}

// provisionRounds are the same of the benchmark provision.
func provisionRounds(speed float64) []result {
	return []result{
		{Benchmark: "provision", Case: "provision", Program: managerName, N: 1000, Done: 1000, PerSecond: speed, Writes: 5},
		{Benchmark: "provision", Case: "provision", Program: bareName, N: 1000, Done: 1000, PerSecond: 200, Writes: 5},
	}
}

func TestTargetsAreJudgedByMediansOfPairs(t *testing.T) {
	for benchmark, rounds := range map[string]func(speed float64) []result{"bind": bindRounds, "provision": provisionRounds} {
		r := &report{out: io.Discard}
		for _, speed := range []float64{100, 190, 185} { // the first round of each was disturbed
			r.Results = append(r.Results, rounds(speed)...)
		}
		r.judge()
		if len(r.Targets) != 5 {
			t.Errorf("%s: %d targets are judged: %+v", benchmark, len(r.Targets), r.Targets)
		}
		for _, target := range r.Targets {
			if !target.Met {
				t.Errorf("%+v is not met", target)
			}
		}
		if err := r.gates(); err != nil {
			t.Errorf("a gate is missed: %v", err)
		}
	}
}

func TestAMissedGateOfBindingIsNamed(t *testing.T) {
	for missed, change := range map[string]func(*result){
		"each claim bound": func(r *result) { r.Done-- },
		"to its volume":    func(r *result) { r.Wrong++ },
		"writes per bind":  func(r *result) { r.Writes = 4.001 },
		"CPU per bind":     func(r *result) { r.CPUEach = 2.1 },
	} {
		for _, w := range workloads {
			got := result{Benchmark: "bind", Case: w.name, Program: managerName, N: 500, Done: 500, Writes: 4, CPUEach: 1}
			change(&got)
			r := &report{Results: []result{got}}
			r.judge()
			if err := r.gates(); err == nil || !strings.Contains(err.Error(), missed) {
				t.Errorf("%s, %s: %v", w.name, missed, err)
			}
		}
	}
}

func TestAMissedGateOfProvisioningIsNamed(t *testing.T) {
	for missed, change := range map[string]func(*result){
		"each claim bound":       func(r *result) { r.Done-- },
		"writes to claim":        func(r *result) { r.Writes = 5.01 },
		"left when all":          func(r *result) { r.Left++ },
		"part of the bare write": func(r *result) { r.PerSecond = 120 },
	} {
		rounds := provisionRounds(200)
		change(&rounds[0])
		r := &report{Results: rounds}
		r.judge()
		if err := r.gates(); err == nil || !strings.Contains(err.Error(), missed) {
			t.Errorf("%s: %v", missed, err)
		}
	}
}

// judgedNames are the names of the targets of all benchmarks.
func judgedNames() (names []string) {
	r := &report{
		LateVolume: &latency{}, LateSamples: 50, Takeover: &takeoverResult{Waiting: 10000}, Scales: []scaleResult{{Pairs: 100000}}, Crowd: &crowdResult{}, Idle: &idleResult{}, NodeIdle: &nodeIdle{Pods: 110, Volumes: 5},
		Events: []eventCost{{clusterSize: eventSizes[0], Cycle: 1}, {clusterSize: eventSizes[1], Cycle: 1}, {clusterSize: eventSizes[2], Cycle: 1}},
	}
	for _, of := range []struct {
		benchmark, name string
		ns              []int
	}{
		{"bind", "identical", []int{500, growthFrom, 2000, growthTo}},
		{"provision", "provision", []int{500, 5000}},
		{"csi", "1", []int{500, 10000}},
		{"csi", "10", []int{10000}},
		{"local", "Directory", []int{500}},
		{"local", "Image", []int{500}},
		{"attach", "attach", []int{1000}},
		{"attach", "move", []int{1000}},
		{"attach", "detach", []int{1000}},
		{"node", "one-pod, mount", []int{1}},
		{"node", "one-pod, unmount", []int{1}},
	} {
		for _, n := range of.ns {
			programs := []string{managerName, bareName}
			if of.benchmark == "node" {
				programs = append(programs, kubeletName)
			}
			for _, program := range programs {
				r.Results = append(r.Results, result{Benchmark: of.benchmark, Case: of.name, Program: program, N: n, Done: n, Seconds: 1, PerSecond: 1, CPUEach: 1, Spread: 1})
			}
		}
	}
	r.judge()
	for _, target := range r.Targets {
		names = append(names, target.Name)
	}
	return names
}

func TestEachTargetIsJudged(t *testing.T) {
	names := judgedNames()
	for _, want := range []string{
		"identical, n=500: part of the bare writes' speed", "identical, n=2000: part of the bare writes' speed, goal",
		"identical, n=2000: part of the bare writes' speed, gate", "identical, n=10000: part of the bare writes' speed, gate",
		"CPU per bind, n=10000 to n=1000", "claim waits, its volume appears, 50 times: bound after, max",
		"p99 beside unmatchable claims, to p99 without", "live heap per idle pair",
		"provision, n=500: part of the bare writes' speed, gate", "provision: CPU per claim, n=5000 to n=500",
		"local, Directory, n=500: each claim bound", "local, Directory, n=500: left when all is deleted",
		"local, Image, n=500: time, to that of the bare operations",
		"attach, 1000 volumes: part of the bare writes' speed", "move, 1000 volumes: writes per volume", "detach, 1000 volumes: writes per volume",
		"node, one-pod, mount: time, to that of the bare operations", "node, one-pod, unmount: time, to that of the bare operations",
		"node, one-pod, mount: time, to that of a stock kubelet", "node, one-pod, unmount: time, to that of a stock kubelet",
		"node, 110 pods with 5 volumes each, idle: part of a core", "node, 110 pods with 5 volumes each, idle: RAM at most",
		"node, 110 pods with 5 volumes each, idle: at work after a restart",
		"a pod comes and goes: CPU, 3000 nodes to 100", "a pod comes and goes: CPU, 10000 volumes to 1000",
	} {
		if !strings.Contains("\n"+strings.Join(names, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%q is not judged", want)
		}
	}
	if len(names) != 81 {
		t.Errorf("%d targets are judged: %q", len(names), names)
	}
}

func TestTheTimeOfAllProcessorsIsShownAndNotJudged(t *testing.T) {
	r := &report{out: io.Discard}
	for program, cpu := range map[string]milliseconds{managerName: 30, bareName: 20} {
		r.Results = append(r.Results, result{
			Benchmark: "provision", Case: "provision", Program: program, N: 1000, Done: 1000,
			Seconds: 1, PerSecond: 1000, DeletedPerSecond: 1000, Writes: 5, AllEach: cpu, DeleteAllEach: 2 * cpu,
		})
	}
	r.judge()
	shown := map[string]string{}
	for _, target := range r.Targets {
		if target.verdict() == "for information" {
			shown[target.Name] = target.Measured
		}
	}
	if want := map[string]string{
		"provision, n=1000: CPU of all programs, to the bare client's":          "1.50 x (30.0 ms, 20.0 ms)",
		"provision, n=1000: deleted: CPU of all programs, to the bare client's": "1.50 x (60.0 ms, 40.0 ms)",
	}; !maps.Equal(shown, want) {
		t.Errorf("shown is %q", shown)
	}
}

func TestAStockKubeletIsShownAndNotJudged(t *testing.T) {
	r := &report{out: io.Discard}
	for _, seconds := range slices.Repeat([]float64{1, 4, 1}, 3) { // one of three cycles of the agent was disturbed
		for program, took := range map[string]float64{agentName: seconds, bareName: 1, kubeletName: 100} {
			r.Results = append(r.Results, result{Benchmark: "node", Case: "one-pod, mount", Program: program, N: 1, Done: 1, Seconds: took})
		}
	}
	r.judge()
	if len(r.Targets) != 2 || r.Targets[0].Measured != "1 x" || !r.Targets[0].Met {
		t.Fatalf("the agent is judged by %+v", r.Targets)
	}
	if got := r.Targets[1]; got.verdict() != "for information" || got.Measured != "0.01 x (1.00 s, 100.00 s)" {
		t.Errorf("beside a kubelet it is %+v", got)
	}
}

func TestADeletionIsJudgedByThatOfTheBareClient(t *testing.T) {
	for speed, met := range map[float64]bool{159: false, 160: true} {
		r := &report{Results: provisionRounds(200)}
		r.Results[0].DeletedPerSecond, r.Results[1].DeletedPerSecond = speed, 200
		r.judge()
		if got := r.Targets[slices.IndexFunc(r.Targets, func(of target) bool { return strings.Contains(of.Name, "deleted, part") })]; got.Met != met {
			t.Errorf("at %.0f/s it is %+v", speed, got)
		}
	}
}
