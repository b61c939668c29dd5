// Command e2e-kubelet is `make e2e-kubelet`: the nodes that end-to-end tests with pods run
// on, by themselves, without Stowage. One is this machine, in namespaces of the test's
// own, and two are User Mode Linux guests; each runs containerd and a kubelet, beside
// the control plane of a stock Kubernetes. Where `make e2e` fails and this does not, the
// test bed is not the reason.
package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
)

// mostTime is how long all of it may take, also on a machine that is busy.
const mostTime = 10 * time.Minute

func main() {
	// What the client libraries log while a server is away is no news here.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	guests.Run(guests.Test{Name: "e2e-kubelet", MostTime: mostTime, Tell: tell, Services: services})
}

// services are what each node can be asked.
func services() ([]any, error) { return []any{&kubenode.Kubernetes{}}, nil }

// tell tells all of it.
func tell(ctx context.Context, folder guests.Folder) error {
	s := newTale(ctx, folder)
	for _, chapter := range []func(*tale){started, ran, propagated, reached, kubeletRestarted, crashed} {
		chapter(s)
	}
	if s.Err() != nil {
		s.show()
	}
	return s.End()
}
