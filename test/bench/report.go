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
	Load       string
	Results    []result
	LateVolume *latency        `json:",omitempty"`
	Crowd      *crowdResult    `json:",omitempty"`
	Idle       *idleResult     `json:",omitempty"`
	Takeover   *takeoverResult `json:",omitempty"`
	Scales     []scaleResult   `json:",omitempty"`
	Events     []eventCost     `json:",omitempty"`
	NodeIdle   *nodeIdle       `json:",omitempty"`
	Targets    []target

	out   io.Writer
	table table
}

type table struct {
	// of is the title of the first column, the results' case.
	of      string
	columns []string
	explain func(result) bool
}

var columns = map[string]struct {
	width int
	value func(result) string
}{
	"N":         {6, func(r result) string { return fmt.Sprint(r.N) }},
	"BOUND":     {6, func(r result) string { return fmt.Sprint(r.Done) }},
	"VOLUMES":   {8, func(r result) string { return fmt.Sprint(r.Volumes) }},
	"SECONDS":   {8, func(r result) string { return decimals(3, r.Seconds) }},
	"PER SEC":   {8, func(r result) string { return decimals(0, r.PerSecond) }},
	"P50 ms":    {8, func(r result) string { return decimals(0, r.Latency.P50) }},
	"P99 ms":    {8, func(r result) string { return decimals(0, r.Latency.P99) }},
	"MAX ms":    {8, func(r result) string { return decimals(0, r.Latency.Max) }},
	"WRITES":    {7, func(r result) string { return decimals(2, r.Writes) }},
	"OTHERS":    {7, func(r result) string { return decimals(2, r.Others) }},
	"REQUESTS":  {9, func(r result) string { return decimals(1, float64(r.Requests.total())/float64(r.N)) }},
	"CPU ms":    {7, func(r result) string { return decimals(2, r.CPUEach) }},
	"MiB":       {6, func(r result) string { return decimals(0, r.PeakMiB) }},
	"DELETED/S": {9, func(r result) string { return decimals(0, r.DeletedPerSecond) }},
	"LEFT":      {6, func(r result) string { return fmt.Sprint(r.Left) }},
}

func decimals[T ~float64](n int, value T) string { return fmt.Sprintf("%.*f", n, float64(value)) }

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

const caseColumns = "%-20s %-11s"

func (r *report) begin(t table) {
	r.table = t
	fmt.Fprintf(r.out, "\n"+caseColumns, t.of, "PROGRAM")
	for _, title := range t.columns {
		fmt.Fprintf(r.out, " %*s", columns[title].width, title)
	}
	fmt.Fprintln(r.out)
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

func (r *report) printTargets() {
	if len(r.Targets) == 0 {
		return
	}
	fmt.Fprintf(r.out, "\n%-62s %-22s %-24s %s\n", "TARGET", "WANTED", "MEASURED", "")
	for _, t := range r.Targets {
		verdict := "met"
		switch {
		case t.Wanted == "":
			verdict = "for information"
		case !t.Met && t.Gate:
			verdict = "MISSED (gate)"
		case !t.Met:
			verdict = "MISSED"
		}
		fmt.Fprintf(r.out, "%-62s %-22s %-24s %s\n", t.Name, t.Wanted, t.Measured, verdict)
	}
}

func (r *report) gates() error {
	var missed []error
	for _, t := range r.Targets {
		if t.Gate && !t.Met {
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
