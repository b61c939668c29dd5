package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/internal/program"
)

// report is everything that was measured.
type report struct {
	Time    time.Time
	Version string
	CPUs    int
	// Load is the machine's load average as the benchmark began: what else it
	// was doing.
	Load       string
	Rounds     []round
	LateVolume *latency         `json:",omitempty"`
	Crowd      *crowdResult     `json:",omitempty"`
	Idle       *idleResult      `json:",omitempty"`
	Provision  []provisionRound `json:",omitempty"`
	Local      []localRound     `json:",omitempty"`
	Attach     []attachPhase    `json:",omitempty"`
	Events     []eventCost      `json:",omitempty"`
	Node       []nodeRound      `json:",omitempty"`
	NodeIdle   *nodeIdle        `json:",omitempty"`
	Targets    []target
}

func newReport() *report {
	load, _ := os.ReadFile("/proc/loadavg") // without it, it isn't told
	fields := strings.Fields(string(load))
	return &report{
		Time: time.Now().UTC().Truncate(time.Second), Version: program.Version(), CPUs: runtime.NumCPU(),
		Load: strings.Join(fields[:min(3, len(fields))], " "),
	}
}

func (r *report) printHeader(out io.Writer) {
	fmt.Fprintf(out, "%s, %d CPUs, load average before: %s\n", r.Time.Format(time.RFC3339), r.CPUs, r.Load)
}

const roundColumns = "%-14s %-8s %6v %6v %8s %8s %8s %8s %7s %7s %6s\n"

func (r *report) printRoundHeader(out io.Writer) {
	fmt.Fprintf(out, "\n"+roundColumns, "WORKLOAD", "PROGRAM", "N", "BOUND", "BOUND/S", "P50 ms", "P99 ms", "MAX ms", "WRITES", "CPU ms", "MiB")
}

// addRound prints a round as it ends: writes and CPU time are those per bind. Why
// writes are more than they should be stands below.
func (r *report) addRound(out io.Writer, result round) {
	r.Rounds = append(r.Rounds, result)
	fmt.Fprintf(out, roundColumns, result.Workload, result.Program, result.N, result.Bound,
		decimals(0, result.PerSecond), decimals(0, result.Latency.P50), decimals(0, result.Latency.P99), decimals(0, result.Latency.Max),
		decimals(2, result.WritesPerBind), decimals(2, result.CPUPerBind), decimals(0, result.PeakMiB))
	if result.WritesPerBind != writesPerBind {
		for _, name := range result.Writes.names() {
			fmt.Fprintf(out, "%15s%s: %d\n", "", name, result.Writes[name])
		}
	}
	if result.Wrong > 0 {
		fmt.Fprintf(out, "%15s%d claims got another volume than theirs\n", "", result.Wrong)
	}
}

func decimals[T ~float64](n int, value T) string { return fmt.Sprintf("%.*f", n, float64(value)) }

func (r *report) printTargets(out io.Writer) {
	if len(r.Targets) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%-62s %-22s %-24s %s\n", "TARGET", "WANTED", "MEASURED", "")
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
		fmt.Fprintf(out, "%-62s %-22s %-24s %s\n", t.Name, t.Wanted, t.Measured, verdict)
	}
}

// gates returns an error that names the gates that were missed.
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
		return fmt.Errorf("encoding the results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("making a folder for the results: %w", err)
	}
	if err := os.WriteFile(name, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
