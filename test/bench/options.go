package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

type options struct {
	benchmarks []string
	workloads  []string
	sizes      []int
	// lates is how often a volume comes for a claim that waits.
	lates int
	// scales are numbers of pairs that are bound before the program starts.
	scales []int
	// takeover is how many claims wait when the leader is killed.
	takeover   int
	provisions []int
	locals     int
	// csiClaims are those of one driver that the manager and the sidecars take turns with. Then
	// there are csiDrivers drivers with csiEach claims each.
	csiClaims, csiDrivers, csiEach int
	// attachNodes and attachVolumes are how many nodes there are, and how many volumes
	// each has, in the benchmark attach.
	attachNodes, attachVolumes int
	// eventVolumes is how many volumes are attached in one more cluster of node-event.
	eventVolumes int
	// nodeIdle is for how long an agent with nothing to do is measured.
	nodeIdle time.Duration
	rounds   int
	manager  string
	agent    string
	vs       string
	json     string
	gate     bool
	quick    bool

	// given are the flags of the command line as it had them, but for those that name benchmarks.
	given []string
	// leftOut is what --quick doesn't measure.
	leftOut []part
}

func parseOptions(arguments []string) (o options, err error) {
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.StringSliceVar(&o.benchmarks, "benchmarks", each(benchmarks, benchmark.String), "What to measure.")
	flags.StringSliceVar(&o.workloads, "workloads", each(workloads, workload.String), "Workloads of the benchmark bind.")
	flags.IntSliceVar(&o.sizes, "n", []int{500, 2000}, "Numbers of pairs of a volume and a claim, for the benchmark bind.")
	flags.IntVar(&o.lates, "late-n", 50, "Number of volumes that come for a claim which waits, one after the other, for the benchmark late-volume.")
	flags.IntSliceVar(&o.scales, "scale-n", []int{leastScale}, "Numbers of bound pairs that the program starts beside, for the benchmark scale. 100,000 take about ten minutes to create.")
	flags.IntVar(&o.takeover, "takeover-n", leastTakeover, "Number of waiting claims when the leader is killed, for the benchmark takeover.")
	flags.IntSliceVar(&o.provisions, "provision-n", []int{500, 5000}, "Numbers of claims for the benchmark provision.")
	flags.IntVar(&o.locals, "local-n", 500, "Number of claims for the benchmark local; each needs 16Mi of the disk that temporary files lie on.")
	flags.IntVar(&o.csiClaims, "csi-n", 500, "Number of claims of one CSI driver, for the benchmark csi.")
	flags.IntVar(&o.csiDrivers, "csi-drivers", 10, "Number of CSI drivers at the same time.")
	flags.IntVar(&o.csiEach, "csi-each", 1000, "Number of claims of each of them.")
	flags.IntVar(&o.attachNodes, "attach-nodes", 50, "Number of nodes for the benchmark attach.")
	flags.IntVar(&o.attachVolumes, "attach-volumes", 20, "Number of volumes on each of them.")
	flags.IntVar(&o.eventVolumes, "event-volumes", 0, "Number of attached volumes of one more cluster for the benchmark node-event, if it is more than 10,000.")
	flags.DurationVar(&o.nodeIdle, "node-idle", leastIdle, "For how long an agent with nothing to do is measured, in the benchmark node; 0: not at all.")
	flags.IntVar(&o.rounds, "rounds", 5, "Interleaved rounds of the workload identical, of provision at the smallest n, of csi with one driver, of local, attach and node. All else gets one.")
	flags.StringVar(&o.manager, "manager", filepath.Join(apiserver.Repository(), "bin", managerName), "The manager to measure.")
	flags.StringVar(&o.agent, "agent", filepath.Join(apiserver.Repository(), "bin", agentName), "The node agent to measure, in local and node.")
	flags.StringVar(&o.vs, "vs", "", "Command of another controller to send through the same workloads in place of the\n"+
		"manager; {{kubeconfig}} in it becomes the path of a kubeconfig.")
	flags.StringVar(&o.json, "json", resultsFile("bench.json"), "File for the results as JSON. make bench makes a page only of the file that is meant without this flag.")
	flags.BoolVar(&o.gate, "gate", false, "End with status 1 if a target that is a gate is missed.")
	flags.BoolVar(&o.quick, "quick", false, "Measure in five minutes at most: fewer benchmarks, at small sizes, into bin/bench-quick.json. Other flags win over what this one chooses.")
	if err := flags.Parse(arguments); err != nil {
		return o, fmt.Errorf("%w: --help lists the flags, and what they are", err)
	}
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "benchmarks" {
			o.given = append(o.given, asGiven(f))
		}
	})
	if o.quick {
		err = chooseQuick(&o, flags)
	}
	return o, errors.Join(err, o.check(flags))
}

func resultsFile(name string) string { return filepath.Join(apiserver.Repository(), "bin", name) }

func asGiven(f *pflag.Flag) string {
	value := f.Value.String()
	if f.Value.Type() == "bool" && value == "true" {
		return "--" + f.Name
	}
	if list, is := f.Value.(pflag.SliceValue); is {
		value = strings.Join(list.GetSlice(), ",")
	}
	if strings.ContainsAny(value, " \t\"{}*$") {
		value = strconv.Quote(value)
	}
	return "--" + f.Name + "=" + value
}

// check refuses values before anything is measured with the others.
func (o options) check(flags *pflag.FlagSet) error {
	var errs []error
	refuse := func(flag, format string, arguments ...any) {
		errs = append(errs, fmt.Errorf("--%s: "+format, append([]any{flag}, arguments...)...))
	}
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("%q is no flag: flags begin with --, and lists have commas without spaces", flags.Arg(0)))
	}
	for _, of := range []struct {
		flag   string
		least  int
		values []int
	}{
		{"n", 1, o.sizes},
		{"late-n", 1, []int{o.lates}},
		{"scale-n", 1, o.scales},
		{"takeover-n", 1, []int{o.takeover}},
		{"provision-n", 1, o.provisions},
		{"local-n", 1, []int{o.locals}},
		{"csi-n", 1, []int{o.csiClaims}},
		{"csi-drivers", 2, []int{o.csiDrivers}}, // they are compared with one
		{"csi-each", 1, []int{o.csiEach}},
		{"attach-nodes", 2, []int{o.attachNodes}}, // volumes move to another
		{"attach-volumes", 1, []int{o.attachVolumes}},
		{"rounds", 1, []int{o.rounds}},
	} {
		if len(of.values) == 0 || slices.Min(of.values) < of.least {
			refuse(of.flag, "set it to %d or more", of.least)
		}
	}
	if largest := eventSizes[len(eventSizes)-1].Volumes; o.eventVolumes != 0 && o.eventVolumes <= largest {
		refuse("event-volumes", "set it to more than %d, which is measured anyway, or leave it out", largest)
	}
	if o.nodeIdle < 0 {
		refuse("node-idle", "set it to a time such as 30s, or to 0")
	}
	errs = append(errs, allNamed(benchmarks, "benchmark", o.benchmarks), allNamed(workloads, "workload", o.workloads))
	for flag, program := range map[string]string{"manager": o.manager, "agent": o.agent} {
		if info, err := os.Stat(program); flags.Changed(flag) && (err != nil || info.IsDir()) {
			refuse(flag, "%s is no program: name one, or leave the flag out, and run make build", program)
		}
	}
	if info, err := os.Stat(o.json); err == nil && info.IsDir() {
		refuse("json", "%s is a folder: name a file", o.json)
	}
	return errors.Join(errs...)
}

func allNamed[T fmt.Stringer](all []T, kind string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("--%ss: name at least one", kind)
	}
	for _, name := range names {
		if _, err := named(all, kind, name); err != nil {
			return err
		}
	}
	return nil
}

// again is the command that measures some benchmarks once more, as this run did.
func (o options) again(names []string) string {
	flags := append([]string{"--benchmarks=" + strings.Join(names, ",")}, o.given...)
	return "make bench BENCHFLAGS='" + strings.Join(flags, " ") + "'"
}
