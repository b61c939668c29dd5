// Command bench is `make bench`: it measures how fast, with how many writes and at what
// cost Stowage's programs work, beside a bare client: one that sends the same writes to
// the same API server on the same machine, without any logic. For CSI drivers it is
// external-provisioner that the manager is compared with.
//
// etcd, kube-apiserver and what is measured are processes of their own. Rounds of a
// program and of its bare client alternate, and medians are compared, because a machine
// isn't equally fast all the time. Results go to the terminal as tables and to a file as
// JSON; docs/benchmarks.md explains how to read them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

type benchmark struct {
	name    string
	measure func(*testbed) error
}

func (b benchmark) String() string { return b.name }

var benchmarks = []benchmark{
	{"bind", (*testbed).measureBind},
	{"late-volume", (*testbed).measureLateVolume},
	{"crowd", (*testbed).measureCrowd},
	{"idle", (*testbed).measureIdle},
	{"scale", (*testbed).measureScale},
	{"takeover", (*testbed).measureTakeover},
	{"provision", (*testbed).measureProvision},
	{"csi", (*testbed).measureCSI},
	{"local", (*testbed).measureLocal},
	{"attach", (*testbed).measureAttach},
	{"node-event", (*testbed).measureNodeEvents},
	{"node", (*testbed).measureNode},
}

func named[T fmt.Stringer](all []T, kind, name string) (one T, err error) {
	for _, one := range all {
		if one.String() == name {
			return one, nil
		}
	}
	return one, fmt.Errorf("there is no %s %q, only %s", kind, name, strings.Join(each(all, T.String), ", "))
}

// parts are the programs that this one can be, besides the benchmark.
var parts = map[string]func(ctx context.Context, kubeconfig string, arguments []string) error{
	"bare-bind":      ofClaims(bareBind),
	"bare-lists":     runBareLists,
	"bare-provision": ofClaims(bareProvision),
	"bare-local":     runBareLocal,
	"bare-attach":    runBareAttach,
	"bare-node":      runBareNode,
	"provisioner":    runProvisioner,
	"attacher":       runAttacher,
}

type options struct {
	benchmarks []string
	workloads  []string
	sizes      []int
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
	rounds       int
	manager      string
	agent        string
	vs           string
	json         string
	gate         bool
}

func main() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	// `make bench | head` tidies up too, and writes its file.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) > 1 {
		if part, is := parts[arguments[0]]; is {
			return part(ctx, arguments[1], arguments[2:])
		}
	}
	o := parseOptions()
	var chosen []benchmark
	for _, name := range o.benchmarks {
		one, err := named(benchmarks, "benchmark", name)
		if err != nil {
			return err
		}
		chosen = append(chosen, one)
	}
	return bench(ctx, o, chosen)
}

func parseOptions() options {
	o := options{}
	pflag.StringSliceVar(&o.benchmarks, "benchmarks", each(benchmarks, benchmark.String), "What to measure.")
	pflag.StringSliceVar(&o.workloads, "workloads", each(workloads, workload.String), "Workloads of the benchmark bind.")
	pflag.IntSliceVar(&o.sizes, "n", []int{500, 2000}, "Numbers of pairs of a volume and a claim, for the benchmark bind.")
	pflag.IntSliceVar(&o.scales, "scale-n", []int{10000}, "Numbers of bound pairs that the program starts beside, for the benchmark scale. 100,000 take about ten minutes to create.")
	pflag.IntVar(&o.takeover, "takeover-n", 10000, "Number of waiting claims when the leader is killed, for the benchmark takeover.")
	pflag.IntSliceVar(&o.provisions, "provision-n", []int{500, 5000}, "Numbers of claims for the benchmark provision.")
	pflag.IntVar(&o.locals, "local-n", 500, "Number of claims for the benchmark local; each needs 16Mi of the disk that temporary files lie on.")
	pflag.IntVar(&o.csiClaims, "csi-n", 500, "Number of claims of one CSI driver, for the benchmark csi.")
	pflag.IntVar(&o.csiDrivers, "csi-drivers", 10, "Number of CSI drivers at the same time.")
	pflag.IntVar(&o.csiEach, "csi-each", 1000, "Number of claims of each of them.")
	pflag.IntVar(&o.attachNodes, "attach-nodes", 50, "Number of nodes for the benchmark attach.")
	pflag.IntVar(&o.attachVolumes, "attach-volumes", 20, "Number of volumes on each of them.")
	pflag.IntVar(&o.eventVolumes, "event-volumes", 0, "Number of attached volumes of one more cluster for the benchmark node-event, if it is more than 10,000.")
	pflag.IntVar(&o.rounds, "rounds", 5, "Interleaved rounds of the workload identical, of provision at the smallest n, of csi with one driver, of local, attach and node. All else gets one.")
	pflag.StringVar(&o.manager, "manager", filepath.Join(apiserver.Repository(), "bin", managerName), "The manager to measure.")
	pflag.StringVar(&o.agent, "agent", filepath.Join(apiserver.Repository(), "bin", agentName), "The node agent to measure, in local and node.")
	pflag.StringVar(&o.vs, "vs", "", "Command of another controller to send through the same workloads in place of the\n"+
		"manager; {{kubeconfig}} in it becomes the path of a kubeconfig.")
	pflag.StringVar(&o.json, "json", filepath.Join(apiserver.Repository(), "bin", "bench.json"), "File for the results as JSON.")
	pflag.BoolVar(&o.gate, "gate", false, "End with status 1 if a target that is a gate is missed.")
	pflag.Parse()
	return o
}

// bench runs what the options name. What was measured before an error, or before Ctrl-C,
// is still reported.
func bench(ctx context.Context, o options, chosen []benchmark) (err error) {
	report := newReport(os.Stdout)
	b, err := newTestbed(ctx, o, report)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	for _, one := range chosen {
		if err = one.measure(b); err != nil {
			err = fmt.Errorf("measuring %s: %w", one.name, err)
			break
		}
	}
	report.judge()
	report.printTargets()
	if writeErr := report.writeJSON(o.json); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	fmt.Printf("\nAs JSON: %s\n", o.json)
	if err == nil && o.gate {
		err = report.gates()
	}
	return err
}
