// Command demo is `make demo`: it starts a whole Stowage in a fresh folder and
// tells the life of volumes in plain sentences, with what an administrator and
// a user would type, and checks each outcome against the API server, the mount
// table and the disk. It ends with 0 only if all of it held.
//
// It leaves nothing behind: no mount, no process, no folder, also after a
// failure or Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/test/cluster"
)

func main() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	err := cluster.EnsureMayMount()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		// A second signal ends the program at once.
		context.AfterFunc(ctx, stop)
		err = demo(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context) (err error) {
	started := time.Now()
	dir, err := os.MkdirTemp("", "stowage-demo-")
	if err != nil {
		return fmt.Errorf("making a folder for the demo: %w", err)
	}
	fmt.Printf("Stowage, from a claim to a mounted directory and back. The manifests are in hack/demo/manifests.\n\n"+
		"  First a cluster of one node, in %s:\n\n", dir)
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Step: showStep})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	s := &story{ctx: ctx, cluster: c}
	s.tell()
	return errors.Join(s.end(started), leaveNothing(context.WithoutCancel(ctx), c))
}

// chapters are the story, in its order: each goes on where the last one ended.
var chapters = []func(*story){
	staticVolume,
	dynamicVolume,
	secondPod,
	reclaim,
	waiting,
	mistakes,
	crash,
	nfsShare,
	images,
	clones,
	disks,
	everyKind,
}

// leaveNothing runs after Ctrl-C too: its context is one that Ctrl-C doesn't end.
func leaveNothing(ctx context.Context, c *cluster.Cluster) error {
	if err := c.Stop(ctx); err != nil {
		return fmt.Errorf("stopping the cluster: %w", err)
	}
	if err := cluster.Remove(ctx, c.Folder.Root()); err != nil {
		return fmt.Errorf("removing the folder of the demo: %w", err)
	}
	return nil
}

func showStep(what string) (done func(error)) {
	started := time.Now()
	fmt.Printf("    %-45s", what)
	return func(err error) {
		if err != nil {
			fmt.Println(" failed")
			return
		}
		fmt.Printf(" %4.1f s\n", time.Since(started).Seconds())
	}
}
