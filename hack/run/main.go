// Command run is `make run`: a whole Stowage on this machine, in one folder,
// until Ctrl-C. It applies sample backends, says what is running and what to
// try, and prints a line for everything that happens to claims, volumes, pods
// and backends, and for each effect in the logs of manager and node agent.
//
// The state stays in the folder, and the next run continues with it; with
// --clean it removes the folder instead.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/test/harness/cluster"
)

func main() {
	dir := pflag.String("dir", ".stowage", "Folder that holds everything.")
	clean := pflag.Bool("clean", false, "Remove the folder, with all volumes in it, and run nothing.")
	pflag.Parse()
	// What the client libraries log when the API server goes is no news here.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())

	err := cluster.EnsureMayMount()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		// A second signal ends the program at once.
		context.AfterFunc(ctx, stop)
		if *clean {
			err = remove(ctx, *dir)
		} else {
			err = run(ctx, *dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func remove(ctx context.Context, dir string) error {
	if err := cluster.Remove(ctx, dir); err != nil {
		return fmt.Errorf("%w\nAfter that, run 'make clean-run' again; what is not removed yet stays in %s", err, dir)
	}
	fmt.Printf("%s is removed.\n", dir)
	return nil
}

func run(ctx context.Context, dir string) error {
	fmt.Printf("Starting Stowage in %s.\n", dir)
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Step: cluster.PrintStep})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted while it started (%w)", ctx.Err())
	}
	if err != nil {
		return err
	}
	err = follow(ctx, c)
	fmt.Printf("\nStopping: pods' volumes are unmounted, then the servers end.\n")
	if stopErr := c.Stop(context.WithoutCancel(ctx)); err == nil {
		err = stopErr
	}
	fmt.Printf("Stopped. All state is in %s: 'make run' continues, 'make clean-run' removes it.\n", dir)
	return err
}

func follow(ctx context.Context, c *cluster.Cluster) error {
	done := cluster.PrintStep("applying sample backends: " + sampleClasses)
	err := applySampleBackends(ctx, c)
	done(err)
	if err != nil {
		return err
	}
	printBanner(c)
	ctx, cancel := context.WithCancelCause(ctx)
	go supervise(ctx, c, cancel)
	for _, program := range []*cluster.Program{c.Manager, c.Agent} {
		go followLog(ctx, program)
	}
	if err := stream(ctx, c); err != nil {
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, errAPIServer) {
		return cause
	}
	return nil // a person asked for the end
}
