package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stowage-dev/stowage/internal/mount"
)

// quickTime is when --quick stops measuring. The rest of five minutes is for what follows: tidying up, and the page.
const (
	quickTime = 4*time.Minute + 30*time.Second
	outOfTime = "the time of --quick was over before its end"
)

// part is a benchmark, or a part of one: why it was left out, or how long it took.
type part struct {
	Name    string
	Why     string  `json:",omitempty"`
	Seconds seconds `json:",omitempty"`
}

// quick is what --quick sets the flags to that aren't given. What is slowest beside what it shows comes last.
var quick = map[string]string{
	"benchmarks": "bind,late-volume,provision,local,attach,node,csi",
	"workloads":  "identical,claims-first",
	"rounds":     "1", "n": "500", "late-n": "20", "provision-n": "500", "local-n": "50", "attach-nodes": "10",
	"node-idle": "0s", "csi-n": "200", "csi-drivers": "3", "csi-each": "50",
	"json": resultsFile("bench-quick.json"),
}

// notQuick is why --quick leaves benchmarks out.
var notQuick = map[string]string{
	"crowd":      "it makes 5,000 claims",
	"idle":       "it makes 20,000 pairs",
	"scale":      "it makes 10,000 pairs, and rests for three minutes",
	"takeover":   "it makes 10,000 claims, and waits for the end of a lease",
	"node-event": "it makes 10,000 volumes, and 3,000 nodes",
}

// chooseQuick sets what isn't given, and notes what isn't measured for that.
func chooseQuick(o *options, flags *pflag.FlagSet) error {
	var errs []error
	chosen := !flags.Changed("benchmarks")
	for name, value := range quick {
		if !flags.Changed(name) {
			errs = append(errs, flags.Set(name, value))
		}
	}
	if !chosen {
		return errors.Join(errs...)
	}
	for _, one := range benchmarks {
		if why, is := notQuick[one.name]; is {
			o.leftOut = append(o.leftOut, part{Name: one.name, Why: why})
		}
	}
	for _, w := range workloads {
		if !slices.Contains(o.workloads, w.name) {
			o.leftOut = append(o.leftOut, part{Name: "bind, " + w.name, Why: "the other workloads bind, too"})
		}
	}
	if err := (mount.Kernel{}).Check(); err != nil {
		o.benchmarks = slices.DeleteFunc(o.benchmarks, func(name string) bool { return name == "node" })
		o.leftOut = append(o.leftOut, part{Name: "node", Why: err.Error()})
	} else if o.nodeIdle == 0 {
		o.leftOut = append(o.leftOut, part{Name: "node, idle", Why: "it takes half a minute"})
	}
	return errors.Join(errs...)
}

// measureAll measures benchmarks one after the other. Those of --quick that its time doesn't suffice for are left out.
func (b *testbed) measureAll() error {
	for _, name := range b.options.benchmarks {
		began := time.Now()
		one, err := named(benchmarks, "benchmark", name)
		if err = errors.Join(err, b.ctx.Err()); err == nil {
			err = one.measure(b)
		}
		switch {
		case b.options.quick && errors.Is(b.ctx.Err(), context.DeadlineExceeded):
			b.report.LeftOut = append(b.report.LeftOut, part{Name: name, Why: outOfTime})
		case err != nil:
			return fmt.Errorf("measuring %s: %w", name, err)
		default:
			took := part{Name: name, Seconds: seconds(time.Since(began).Seconds())}
			b.report.Took = append(b.report.Took, took)
			fmt.Fprintf(b.report.out, "  %s took %.0f s\n", took.Name, took.Seconds)
		}
	}
	return nil
}

// printEnd says what isn't in the table of targets, what missed one, and how to measure that again.
func (r *report) printEnd(o options) {
	var again []string
	if len(r.LeftOut) > 0 {
		fmt.Fprintln(r.out, "\nLeft out:")
	}
	for _, one := range r.LeftOut {
		fmt.Fprintf(r.out, "  %-20s %s\n", one.Name, one.Why)
		if one.Why == outOfTime {
			again = append(again, one.Name)
		}
	}
	small, missed := 0, []string{}
	for _, t := range r.Targets {
		switch {
		case t.Small != "":
			small++
		case t.missed():
			missed = append(missed, fmt.Sprintf("  %s: %s\n", t.Name, t.Measured))
			again = append(again, t.Benchmark)
		}
	}
	fmt.Fprintf(r.out, "\n%d targets: %d met or for information, %d not judged, %d missed\n", len(r.Targets), len(r.Targets)-small-len(missed), small, len(missed))
	fmt.Fprint(r.out, strings.Join(missed, ""))
	if small > 0 {
		fmt.Fprintln(r.out, "Too little was measured for those that are not judged: see docs/benchmarks.md, or leave out --quick")
	}
	if len(again) > 0 {
		slices.Sort(again)
		fmt.Fprintf(r.out, "That again, alone: %s\n", o.again(slices.Compact(again)))
	}
}
