// Command e2e-attach is `make e2e-attach`: disks of a cloud that are attached to nodes
// with kernels of their own. The cloud is gce-mock, which plugs disks into two User
// Mode Linux guests, the nodes; a whole Stowage makes disks for claims, attaches them
// to where pods are, and mounts them there. Nodes die, programs are killed, and the
// cloud is slow, refuses and fails; a watcher looks all the time that no two nodes
// can write to one disk.
package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/test/guests"
)

// mostTime is how long all of it may take, also on a machine that is busy.
const mostTime = 12 * time.Minute

func main() {
	// What the client libraries log while a server is away is no news here.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	guests.Run(guests.Test{Name: "e2e-attach", MostTime: mostTime, Tell: tell, Services: services})
}

// services are what each node can be asked.
func services() ([]any, error) { return []any{Devices{}}, nil }

// chapters are the story, in its order.
var chapters = []func(*tale){
	installed, moved, wanted, cameBack, raw, grown, existing, agentKilled, managerKilled, cloudKilled, cloudFails, died, returned, stopped, left,
}

// tell tells all of it.
func tell(ctx context.Context, folder guests.Folder) error {
	s := newTale(ctx, folder)
	s.Do("a cloud and two nodes with a kernel of their own start", s.boot)
	for _, chapter := range chapters {
		if s.Err() == nil {
			chapter(s)
		}
	}
	if s.Err() != nil {
		s.show()
	}
	return s.End()
}
