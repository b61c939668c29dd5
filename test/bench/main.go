// Command bench is `make bench`: it measures how fast, with how many writes and
// at what cost the manager binds claims, and sets that beside what a client
// without any logic gets out of the same API server on the same machine.
//
// etcd, kube-apiserver and what is measured are processes of their own. Rounds
// of the manager and of the bare client alternate, and medians are compared,
// because a machine isn't equally fast all the time. Results go to the terminal
// as tables and to a file as JSON; docs/benchmarks.md tells how to read them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/apiserver"
)

// Arguments that make this program one of those it measures.
const (
	// bareArgument makes it the bare client of bare.go.
	bareArgument = "bare"
	// bareProvisionArgument makes it that of bare_provision.go.
	bareProvisionArgument = "bare-provision"
	// bareLocalArgument makes it that of local_bare.go.
	bareLocalArgument = "bare-local"
	// bareAttachArgument makes it that of attach_bare.go.
	bareAttachArgument = "bare-attach"
	// bareNodeArgument makes it that of node_bare.go.
	bareNodeArgument = "bare-node"
	// provisionerArgument makes it the manager of provisioner.go.
	provisionerArgument = "provisioner"
	// attacherArgument makes it that of attacher.go.
	attacherArgument = "attacher"
)

type options struct {
	benchmarks []string
	workloads  []string
	sizes      []int
	provisions []int
	locals     int
	// attachNodes and attachVolumes are how many nodes there are, and how many volumes
	// each has, in the benchmark attach.
	attachNodes, attachVolumes int
	rounds                     int
	manager                    string
	agent                      string
	vs                         string
	json                       string
	gate                       bool
}

func main() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	// `make bench | head` tidies up too, and writes its file.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) == 1 {
		return bench(ctx, parseOptions())
	}
	switch arguments := os.Args[2:]; os.Args[1] {
	case bareArgument:
		return runBare(ctx, arguments[0], bareBind)
	case bareProvisionArgument:
		return runBare(ctx, arguments[0], bareProvision)
	case bareLocalArgument:
		return runBare(ctx, arguments[0], bareLocal(stowagev1alpha1.LocalLayout(arguments[1]), arguments[2]))
	case bareAttachArgument:
		return runBareAttach(ctx, arguments[0], phase(arguments[1]), arguments[2:]...)
	case bareNodeArgument:
		return runBareNode(ctx, arguments[0], arguments[1])
	case attacherArgument:
		return runAttacher(ctx, arguments[0])
	case provisionerArgument:
		return runProvisioner(ctx, arguments[0], arguments[1])
	default:
		return bench(ctx, parseOptions())
	}
}

func parseOptions() options {
	o := options{}
	pflag.StringSliceVar(&o.benchmarks, "benchmarks", []string{"bind", "late-volume", "crowd", "idle", "provision", "local", "attach", "node-event", "node"}, "What to measure.")
	pflag.StringSliceVar(&o.workloads, "workloads", workloadNames(), "Workloads of the benchmark bind.")
	pflag.IntSliceVar(&o.sizes, "n", []int{500, 2000}, "Numbers of pairs of a volume and a claim, for the benchmark bind.")
	pflag.IntSliceVar(&o.provisions, "provision-n", []int{500, 5000}, "Numbers of claims for the benchmark provision.")
	pflag.IntVar(&o.locals, "local-n", 500, "Number of claims for the benchmark local; each needs 16Mi of the disk that temporary files lie on.")
	pflag.IntVar(&o.attachNodes, "attach-nodes", 50, "Number of nodes for the benchmark attach.")
	pflag.IntVar(&o.attachVolumes, "attach-volumes", 20, "Number of volumes on each of them.")
	pflag.IntVar(&o.rounds, "rounds", 5, "Interleaved rounds of the workload identical, of provision at the smallest n, of local, attach and node. All else gets one.")
	pflag.StringVar(&o.manager, "manager", filepath.Join(apiserver.Repository(), "bin", "manager"), "The manager to measure.")
	pflag.StringVar(&o.agent, "agent", filepath.Join(apiserver.Repository(), "bin", agentName), "The node agent to measure, in local and node.")
	pflag.StringVar(&o.vs, "vs", "", "Command of another controller to send through the same workloads in place of the\n"+
		"manager; {{kubeconfig}} in it becomes the path of a kubeconfig.")
	pflag.StringVar(&o.json, "json", filepath.Join(apiserver.Repository(), "bin", "bench.json"), "File for the results as JSON.")
	pflag.BoolVar(&o.gate, "gate", false, "End with status 1 if a target that is a gate is missed.")
	pflag.Parse()
	return o
}

// bench runs what the options name. What was measured before an error, or before
// Ctrl-C, is still reported.
func bench(ctx context.Context, o options) (err error) {
	bed, err := newTestbed(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.stop()) }()
	report := newReport()
	report.printHeader(os.Stdout)
	err = measure(bed, o, report)
	report.judge()
	report.printTargets(os.Stdout)
	if writeErr := report.writeJSON(o.json); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	fmt.Printf("\nAs JSON: %s\n", o.json)
	if err == nil && o.gate {
		err = report.gates()
	}
	return err
}

func measure(bed *testbed, o options, report *report) error {
	for _, name := range o.benchmarks {
		var err error
		switch name {
		case "bind":
			err = bed.measureBind(o, report)
		case "late-volume":
			err = bed.measureLateVolume(report)
		case "crowd":
			err = bed.measureCrowd(report)
		case "idle":
			err = bed.measureIdle(report)
		case "provision":
			err = bed.measureProvision(o, report)
		case "local":
			err = bed.measureLocal(o, report)
		case "attach":
			err = bed.measureAttach(o, report)
		case "node-event":
			err = bed.measureNodeEvents(o, report)
		case "node":
			err = bed.measureNode(o, report)
		default:
			err = fmt.Errorf("there is no benchmark %q", name)
		}
		if err != nil {
			return fmt.Errorf("measuring %s: %w", name, err)
		}
	}
	return nil
}
