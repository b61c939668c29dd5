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
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
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
	"bare-bind":      ofClaims(bareBind, nil),
	"bare-lists":     runBareLists,
	"bare-provision": ofClaims(bareProvision, bareReclaim),
	"bare-local":     runBareLocal,
	"bare-attach":    runBareAttach,
	"bare-node":      runBareNode,
	"provisioner":    runProvisioner,
	"attacher":       runAttacher,
	kubeletName:      becomeKubelet,
}

func main() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	// `make bench | head` tidies up too, and writes its file.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
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
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	return bench(ctx, o)
}

// bench runs what the options name. What was measured before an error, or before Ctrl-C,
// is still reported.
func bench(ctx context.Context, o options) (err error) {
	report := newReport(os.Stdout)
	report.Quick, report.LeftOut = o.quick, o.leftOut
	if o.quick {
		within, cancel := context.WithTimeout(ctx, quickTime)
		defer cancel()
		ctx = within
	}
	b, err := newTestbed(ctx, o, report)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	err = b.measureAll()
	report.judge()
	report.printTargets()
	report.printEnd(o)
	if writeErr := report.writeJSON(o.json); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	fmt.Printf("\nAs JSON: %s\n", o.json)
	if err == nil && o.gate {
		err = report.gates()
	}
	return err
}
