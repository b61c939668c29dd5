package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuickChoosesSmallSizesAndNamesAllThatItLeavesOut(t *testing.T) {
	o, err := parseOptions([]string{"--quick"})
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Clone(o.benchmarks)
	for _, one := range o.leftOut {
		if one.Why == "" {
			t.Errorf("%s is left out without a reason", one.Name)
		}
		known = append(known, one.Name)
	}
	for _, one := range benchmarks {
		if !slices.Contains(known, one.name) {
			t.Errorf("%s is neither measured nor left out", one.name)
		}
	}
	for _, name := range []string{"bind", "late-volume", "provision", "csi", "local", "attach"} {
		if !slices.Contains(o.benchmarks, name) {
			t.Errorf("%s is left out", name)
		}
	}
	if o.rounds != 1 || !slices.Equal(o.sizes, []int{500}) || o.csiDrivers*o.csiEach > 1000 || !strings.HasSuffix(o.json, "bench-quick.json") {
		t.Errorf("it measures %+v", o)
	}
}

func TestWithoutQuickAllIsMeasured(t *testing.T) {
	o, err := parseOptions(nil)
	if err != nil || len(o.benchmarks) != len(benchmarks) || len(o.leftOut) != 0 || o.rounds != 5 || !strings.HasSuffix(o.json, "bench.json") {
		t.Errorf("it measures %+v, %v", o, err)
	}
}

func TestFlagsThatAreGivenWinOverQuick(t *testing.T) {
	for _, arguments := range [][]string{
		{"--quick", "--n=100,200", "--rounds=3", "--json=/tmp/mine.json"}, {"--n=100,200", "--rounds=3", "--json=/tmp/mine.json", "--quick"},
	} {
		o, err := parseOptions(arguments)
		if err != nil || !slices.Equal(o.sizes, []int{100, 200}) || o.rounds != 3 || o.json != "/tmp/mine.json" || o.locals != 50 {
			t.Errorf("%v: it measures %+v, %v", arguments, o, err)
		}
	}
	o, err := parseOptions([]string{"--quick", "--benchmarks=crowd"})
	if err != nil || !slices.Equal(o.benchmarks, []string{"crowd"}) || len(o.leftOut) != 0 {
		t.Errorf("it measures %+v, %v", o, err)
	}
}

func TestValuesThatCannotBeMeasuredAreRefused(t *testing.T) {
	for argument, wanted := range map[string]string{
		"--n=0":                   "--n: set it to 1 or more",
		"--provision-n=500,-1":    "--provision-n: set it to 1 or more",
		"--rounds=0":              "--rounds: set it to 1 or more",
		"--attach-nodes=1":        "--attach-nodes: set it to 2 or more",
		"--csi-drivers=1":         "--csi-drivers: set it to 2 or more",
		"--event-volumes=10000":   "--event-volumes: set it to more than 10000",
		"--node-idle=-1s":         "--node-idle: set it to a time such as 30s",
		"--benchmarks=bnd":        `no benchmark "bnd", only bind, `,
		"--benchmarks=":           "--benchmarks: name at least one",
		"--workloads=some":        `no workload "some", only identical, `,
		"--manager=/no/such/file": "--manager: /no/such/file is no program",
		"--json=/tmp":             "--json: /tmp is a folder",
		"quick":                   `"quick" is no flag: flags begin with --`,
		"--n=many":                "--help lists the flags",
		"--fast":                  "--fast: --help lists the flags",
	} {
		if _, err := parseOptions([]string{argument}); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

func TestTooLittleIsNeitherMetNorMissed(t *testing.T) {
	two := func(benchmark, name string, n int) []result {
		of := result{Benchmark: benchmark, Case: name, Program: managerName, N: n, Done: n, Seconds: 1, PerSecond: 1, CPUEach: 1, PeakMiB: 1, Spread: 9}
		beside := of
		beside.Program = bareName
		return []result{of, beside}
	}
	for name, small := range map[string]*report{
		"speed":                   {Results: two("provision", "provision", 999)},
		"time, to":                {Results: slices.Concat(two("local", "Image", 500), two("node", "one-pod, mount", 1))},
		"slowest":                 {Results: two("csi", "3", 150)},
		"of the sidecars":         {Results: two("csi", "1", 200)},
		"identical, n=500: part":  {Results: slices.Repeat(two("bind", "identical", 500), 5)},
		"to n=100":                {Results: slices.Concat(two("provision", "provision", 100), two("provision", "provision", 999))},
		"bound after":             {LateVolume: &latency{}, LateSamples: 19},
		"later ones":              {Takeover: &takeoverResult{Waiting: 9999}},
		"scale":                   {Scales: []scaleResult{{Pairs: 9999}}},
		"with 5 volumes":          {NodeIdle: &nodeIdle{Pods: 110, Volumes: 5, Seconds: 10}},
		"move, 200 volumes: part": {Results: two("attach", "move", 200)},
	} {
		small.judge()
		found := 0
		for _, one := range small.Targets {
			if !strings.Contains(one.Name, name) {
				continue
			}
			found++
			if one.Small == "" || one.Met || one.missed() || one.verdict() != "too small" {
				t.Errorf("%+v is judged", one)
			}
		}
		if found == 0 {
			t.Errorf("%q isn't there: %+v", name, small.Targets)
		}
	}
	enough := &report{Results: slices.Concat(two("provision", "provision", 1000), two("provision", "provision", 10000)), LateVolume: &latency{}, LateSamples: 20}
	enough.judge()
	if len(enough.Targets) != 12 || slices.ContainsFunc(enough.Targets, func(one target) bool { return one.Small != "" }) {
		t.Errorf("what is enough is not judged: %+v", enough.Targets)
	}
}

func TestTheEndSaysWhatMissedAndHowToMeasureItAgain(t *testing.T) {
	o, err := parseOptions([]string{"--quick", "--n=100,200", "--benchmarks=bind,node", "--vs=sh -c {{kubeconfig}}"})
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	r := &report{out: out, LeftOut: []part{{Name: "crowd", Why: "it is large"}, {Name: "attach", Why: outOfTime}}, Targets: []target{
		{Name: "a", Measured: "5 ms", Benchmark: "bind"}, {Name: "b", Benchmark: "bind", Met: true}, {Name: "c", Benchmark: "csi", Small: "1 of 2"}, {Name: "d", Benchmark: "node"},
	}}
	r.printEnd(o)
	for _, wanted := range []string{
		"crowd                it is large", "4 targets: 1 met or for information, 1 not judged, 2 missed\n  a: 5 ms\n",
		`make bench BENCHFLAGS='--benchmarks=attach,bind,node --n=100,200 --quick --vs="sh -c {{kubeconfig}}"'`,
	} {
		if !strings.Contains(out.String(), wanted) {
			t.Errorf("it lacks %q:\n%s", wanted, out)
		}
	}
}

func TestWhatTheTimeDoesNotSufficeForIsLeftOutAndMissesTheGate(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	r := &report{out: io.Discard}
	b := &testbed{ctx: ctx, report: r, options: options{quick: true, benchmarks: []string{"bind", "csi"}}}
	if err := b.measureAll(); err != nil {
		t.Fatal(err)
	}
	if len(r.LeftOut) != 2 || r.LeftOut[1].Name != "csi" {
		t.Errorf("%v is left out", r.LeftOut)
	}
	if err := r.gates(); err == nil || !strings.Contains(err.Error(), "csi") {
		t.Errorf("the gates are met: %v", err)
	}
	b.options.quick = false
	if err := b.measureAll(); err == nil {
		t.Error("without --quick it is no error")
	}
}

func TestTablesFitATerminal(t *testing.T) {
	out := &bytes.Buffer{}
	r := &report{out: out}
	for name := range tables {
		r.begin(name)
		r.add(result{
			Case: "many-pods, unmount", Program: "node-agent", N: 10000, Done: 10000, Volumes: 50, Writes: 4, CPUEach: 12.34, PeakMiB: 1234,
			Seconds: 123.456, PerSecond: 12345, DeletedPerSecond: 12345, Latency: latency{P50: 12345, P99: 12345, Max: 12345},
		})
	}
	for _, name := range judgedNames() {
		r.want(name, "<= 3072 bytes", "0.93 (1830/s of 1960/s)", true)
	}
	r.Targets[0].Wanted = ""
	r.printTargets()
	for line := range strings.Lines(out.String()) {
		if len(line) > 101 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}
