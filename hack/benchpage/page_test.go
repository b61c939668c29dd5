package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sample is a run with two programs at two sizes.
func sample(measured string) results {
	all := results{
		Time: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC), Version: "v1", CPUs: 2, Load: "0.1 0.2 0.3",
		Events:  []event{{Nodes: 100, Volumes: 1000, Cycle: 15, Beat: 1}, {Nodes: 3000, Volumes: 10000, Cycle: 18, Beat: 1}},
		Targets: []target{{Name: "bind: speed", Wanted: ">= 0.9 x", Measured: measured, Met: true}, {Name: "<b>", Wanted: "1", Measured: "2", Gate: true}},
	}
	for _, n := range []int{500, 2000} {
		for _, program := range []string{"manager", "bare"} {
			for round := range 3 {
				one := result{Benchmark: "bind", Case: "identical", Program: program, N: n, PerSecond: float64(100 + round), CPUEach: 1.5}
				one.Latency.P50, one.Latency.P99, one.Latency.Max = 10, 20, 30
				all.Results = append(all.Results, one)
			}
		}
	}
	return all
}

func write(t *testing.T, path string, all results) {
	t.Helper()
	content, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestThePageHasTargetsBesideThoseOfTheLastRunAndPlots(t *testing.T) {
	folder := t.TempDir()
	now, to := filepath.Join(folder, "now.json"), filepath.Join(folder, "page.html")
	write(t, now, sample("0.95 x"))
	earlier := filepath.Join(folder, "earlier")
	if err := os.Mkdir(earlier, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(earlier, "2026-11-01.json"), sample("0.50 x"))
	write(t, filepath.Join(earlier, "2026-11-20.json"), sample("0.85 x"))

	if err := run(now, earlier, to); err != nil {
		t.Fatal(err)
	}

	content, _ := os.ReadFile(to)
	text := string(content)
	for _, want := range []string{
		"0.95 x", "0.85 x", "missed (gate)", "&lt;b&gt;", "identical, n = 2000: speed of each round",
		"identical: cost against size", "node-event: cost of an event",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(text, "0.50 x") || strings.Contains(text, "<b>") || strings.Contains(text, "<script") {
		t.Error("the page has what it shouldn't have")
	}
	if plots := strings.Count(text, "<svg"); plots != 6 {
		t.Errorf("it has %d plots", plots)
	}
}

func TestAQuickRunIsComparedAtEqualSizesAlone(t *testing.T) {
	folder := t.TempDir()
	now, earlier, to := filepath.Join(folder, "now.json"), filepath.Join(folder, "earlier.json"), filepath.Join(folder, "page.html")
	whole := sample("0.85 x")
	whole.Targets = append(whole.Targets, target{Name: "n=2000: speed", Measured: "0.77 x", Met: true})
	write(t, earlier, whole)
	quick := sample("0.95 x")
	quick.Quick = true
	quick.LeftOut = []struct{ Name, Why string }{{"crowd", "it is large"}, {"scale", "it is larger"}}
	quick.Targets = append(quick.Targets, target{Name: "n=500: speed", Measured: "0.66 x", Small: "500 compared, judged from 1000"})
	write(t, now, quick)

	if err := run(now, earlier, to); err != nil {
		t.Fatal(err)
	}

	content, _ := os.ReadFile(to)
	for _, want := range []string{
		"A quick run", "one of them is quick", "<td>0.95 x<td>0.85 x", "<td>0.66 x<td><td", "too small: 500 compared, judged from 1000",
		"Left out: crowd (it is large); scale (it is larger).",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(string(content), "0.77 x") {
		t.Error("another size is compared")
	}
	write(t, now, whole)
	write(t, earlier, quick)
	if err := run(now, earlier, to); err != nil {
		t.Fatal(err)
	}
	if content, _ = os.ReadFile(to); !strings.Contains(string(content), "Compared with the quick run") {
		t.Error("the page doesn't say that the earlier run is quick")
	}
}

func TestWithoutAnEarlierRunThePageSaysSo(t *testing.T) {
	folder := t.TempDir()
	now, to := filepath.Join(folder, "now.json"), filepath.Join(folder, "page.html")
	write(t, now, sample("0.95 x"))
	for _, earlier := range []string{"", filepath.Join(folder, "none"), t.TempDir()} {
		if err := run(now, earlier, to); err != nil {
			t.Fatal(err)
		}
		if content, _ := os.ReadFile(to); !strings.Contains(string(content), "no earlier run") {
			t.Errorf("with %q it says nothing of it", earlier)
		}
	}
}

func TestResultsThatCannotBeReadAreAnError(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{broken, filepath.Join(folder, "none")} {
		if err := run(path, "", filepath.Join(folder, "page.html")); err == nil {
			t.Errorf("%s is no error", path)
		}
	}
	good := filepath.Join(folder, "good.json")
	write(t, good, sample("1 x"))
	if err := run(good, broken, filepath.Join(folder, "page.html")); err == nil {
		t.Error("a broken earlier run is no error")
	}
}
