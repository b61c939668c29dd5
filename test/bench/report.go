package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/internal/program"
)

type report struct {
	Time    time.Time
	Version string
	CPUs    int
	// Load is the machine's load average as the benchmark began: what else it
	// was doing.
	Load string
	// Quick is a run of --quick. Took is how long each benchmark took, and LeftOut what wasn't measured.
	Quick         bool   `json:",omitempty"`
	Took, LeftOut []part `json:",omitempty"`

	Results    []result
	LateVolume *latency `json:",omitempty"`
	// LateSamples is how often it was measured.
	LateSamples int             `json:",omitempty"`
	Crowd       *crowdResult    `json:",omitempty"`
	Idle        *idleResult     `json:",omitempty"`
	Takeover    *takeoverResult `json:",omitempty"`
	Scales      []scaleResult   `json:",omitempty"`
	Events      []eventCost     `json:",omitempty"`
	NodeIdle    *nodeIdle       `json:",omitempty"`
	Targets     []target

	out   io.Writer
	table table
	// judging is the benchmark whose targets are judged.
	judging string
}

func newReport(out io.Writer) *report {
	load, _ := os.ReadFile("/proc/loadavg") // without it, it isn't shown
	fields := strings.Fields(string(load))
	r := &report{
		Time: time.Now().UTC().Truncate(time.Second), Version: program.Version(), CPUs: runtime.NumCPU(),
		Load: strings.Join(fields[:min(3, len(fields))], " "), out: out,
	}
	fmt.Fprintf(out, "%s, %d CPUs, load average before: %s\n", r.Time.Format(time.RFC3339), r.CPUs, r.Load)
	return r
}

// add prints a round as it ends. Why it isn't as it should be stands below.
func (r *report) add(got result) {
	r.Results = append(r.Results, got)
	fmt.Fprintf(r.out, caseColumns, got.Case, got.Program)
	for _, title := range r.table.columns {
		fmt.Fprintf(r.out, " %*s", columns[title].width, columns[title].value(got))
	}
	fmt.Fprintln(r.out)
	if r.table.explain != nil && r.table.explain(got) {
		written := got.Requests.writes()
		for _, name := range slices.Sorted(maps.Keys(written)) {
			fmt.Fprintf(r.out, "%15s%s: %d\n", "", name, written[name])
		}
	}
	if got.Wrong > 0 {
		fmt.Fprintf(r.out, "%15s%d claims got another volume than theirs\n", "", got.Wrong)
	}
}

// printTargets prints all targets of one case below it.
func (r *report) printTargets() {
	if len(r.Targets) == 0 {
		return
	}
	fmt.Fprintf(r.out, "\n"+targetColumns, "TARGET", "WANTED", "MEASURED", "")
	before := ""
	for _, t := range r.Targets {
		of, what, found := strings.Cut(t.Name, ": ")
		switch {
		case !found:
			what, of = of, ""
		case of != before:
			fmt.Fprintf(r.out, "%s:\n", of)
		}
		before = of
		if found {
			what = "  " + what
		}
		fmt.Fprintf(r.out, targetColumns, what, t.Wanted, t.Measured, t.verdict())
	}
}

func (r *report) gates() error {
	var missed []error
	for _, one := range r.LeftOut {
		if one.Why == outOfTime {
			missed = append(missed, fmt.Errorf("gates of %s: %s", one.Name, one.Why))
		}
	}
	for _, t := range r.Targets {
		if t.Gate && t.missed() {
			missed = append(missed, fmt.Errorf("gate missed: %s: %s, wanted %s", t.Name, t.Measured, t.Wanted))
		}
	}
	return errors.Join(missed...)
}

func (r *report) writeJSON(name string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, append(content, '\n'), 0o644)
}
