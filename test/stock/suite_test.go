// Package stock runs Stowage beside the real kube-controller-manager and
// kube-scheduler: what they and Stowage expect of each other is proved here. Nodes are
// objects whose leases the suite renews; there is no kubelet, so pods are placed and
// never run. The manager and the nodes' agents are the real programs with the rights
// of config/rbac, each node has a disk of its own, a tmpfs, and the cloud is gce-mock.
//
// `make test-stock` runs it; it needs root.
package stock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/controlplane"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

const (
	// soon is how long what takes a moment may take on a busy machine. Pods that were
	// found not to fit anywhere are tried again by the scheduler after some seconds.
	soon = 90 * time.Second
	poll = 200 * time.Millisecond
	// still is for how long nothing happens where nothing is to happen.
	still = 3 * time.Second
)

var (
	plane *controlplane.ControlPlane
	users client.WithWatch
	world *stowage
)

func TestStock(t *testing.T) {
	if os.Getenv("STOWAGE_TEST_STOCK") == "" {
		t.Skip("make test-stock runs this")
	}
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	specs.Run(t, "Beside a stock Kubernetes")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	folder, err := filepath.Abs(filepath.Join("..", "..", "bin", "test", "stock"))
	Expect(err).NotTo(HaveOccurred())
	Expect(os.RemoveAll(folder)).To(Succeed())
	By("starting a control plane; logs are in " + folder)
	plane, err = controlplane.Start(ctx, controlplane.Options{Dir: folder})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return plane.Stop() })
	scheme, err := program.Scheme()
	Expect(err).NotTo(HaveOccurred())
	users, err = client.NewWithWatch(plane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	share, err := nfstest.Serve(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(share.Close)
	world = &stowage{dir: folder, share: share}
	DeferCleanup(world.stop)
	world.install(ctx)
	world.startCloud(ctx)
	world.registerNodes(ctx)
	world.startAgents(ctx)
	world.startManager(ctx, "classes")
	world.createBackends(ctx)
})
