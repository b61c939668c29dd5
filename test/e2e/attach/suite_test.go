// Package attach_test is `make e2e-attach`: disks of a cloud that are attached to nodes
// with kernels of their own. The cloud is gce-mock, which plugs disks into two User Mode
// Linux guests, the nodes; a whole Stowage makes disks for claims, attaches them to the
// nodes of pods, and mounts them there. Nodes die, programs are killed, and the cloud is
// slow, refuses and fails; a watcher checks all the time that no two nodes can write to
// one disk.
package attach_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/test/harness/googlenode"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// suiteTimeout and specTimeout are long enough for a machine that is busy.
	suiteTimeout = 20 * time.Minute
	specTimeout  = 5 * time.Minute
)

func TestMain(m *testing.M) {
	guest.Main(m, guest.Suite{Name: "e2e-attach", Timeout: suiteTimeout, Services: services})
}

func TestAttach(t *testing.T) { guest.RunSpecs(t, "Attach") }

// services are what each node serves.
func services() ([]any, error) {
	return []any{Devices{}, &googlenode.GoogleNode{}, &GoogleDriver{}}, nil
}

// shared is the testbed of all specs.
var shared = &testbed{}

// spec is one that runs: its context, and the testbed.
type spec struct {
	*testbed
	ctx context.Context
}

// checks is the body of a spec, with its timeout.
func checks(parts ...func(*spec)) []any {
	return []any{SpecTimeout(specTimeout), func(ctx SpecContext) {
		for _, part := range parts {
			part(&spec{shared, ctx})
		}
	}}
}

var _ = BeforeSuite(func(ctx SpecContext) {
	s := &spec{shared, ctx}
	s.folder = guest.SuiteFolder()
	DeferOnFailure(s.dump, NodeTimeout(specTimeout))
	scenario.Step("a cloud and two nodes with a kernel of their own start", s.boot)
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.watcher = watch(lasting, filepath.Join(s.cloud.folder, "images"))
	DeferCleanup(stop)
}, NodeTimeout(specTimeout))

// The disk of the claim data is attached nowhere when a spec begins, and has a file.
var _ = Describe("A cloud's disk", Ordered, Label("attach", "volumes"), func() {
	BeforeAll(func(ctx SpecContext) { installed(&spec{shared, ctx}) }, NodeTimeout(specTimeout))
	BeforeEach(func(ctx SpecContext) {
		s := &spec{shared, ctx}
		scenario.Step("the disk is attached nowhere", func() error { return s.isDetachedSoon(s.data) })
	}, NodeTimeout(specTimeout))

	//proves:csi/gce
	It("moves with its pod from node to node", checks(moved))
	It("stays where it is used while a pod on the other node waits for it", checks(contended))
	It("comes back to a pod that is made again at once, where it was", checks(cameBack))
	//proves:csi/gce-Block
	It("is a block device for pods that want one", checks(raw))
	It("is written by pods of two nodes at once, as a device of a type that can be shared", checks(sharedByNodes))
	//proves:csi/expansion
	It("grows", checks(grown))
	It("is copied, and both are used on one node", checks(copied))
	It("is restored to what it had when its snapshot was made", checks(restored))
	It("is in each zone for pods that only read it, and pods of several nodes read it at once", checks(readInEachZone))
	//proves:gcePersistentDisk/claim
	It("that existed beforehand is attached, and outlives its volume object", checks(existing))
	It("stays attached and mounted while its node's agent is killed", Label("node"), checks(agentKilled))
	It("arrives when the manager is killed during a move", checks(managerKilled))
	It("arrives when the cloud's own program is killed", checks(cloudKilled))
	It("arrives though the cloud refuses, fails and forgets to answer", checks(cloudFails))
	It("leaves a node that died, and the node comes back without it", Label("node", "slow"), checks(died, returned))
	It("leaves a node whose machine was stopped", Label("node"), checks(stopped))
	//proves:csi/foreign csi/foreign-attached csi/foreign-Block csi/foreign-expansion
	It("of Google's own CSI driver is mounted by the agent's calls to that driver", Label("csi"), checks(googles))
	It("is left nowhere, and never had two writers", checks(left))
})
