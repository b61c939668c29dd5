// Package upgrade_test is `make e2e-upgrade`: a node without a kubelet is upgraded while its pods
// run. The real programs of an earlier commit, STOWAGE_UPGRADE_FROM, provision and mount volumes of
// every driver on a User Mode Linux guest. Then manager and agent are replaced by this commit's.
// The agent has to take over what the earlier one mounted, and in the end to unmount all of it.
//
// Containers are processes in mount namespaces of their own, which the agents' mounts.json
// describes. They write to their volumes all the time.
//
// In between, the kinds LocalVolume, LocalDisk and LocalRecycling got other names, without a
// conversion, as nothing was released. For the manager that is as if their CRDs had been deleted:
// it recreates the NodeVolumes of volumes that the new agent finds on its disk. Nothing in the test
// helps it. Only what is left of the earlier kinds an administrator removes by hand.
package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// suiteTimeout and specTimeout are long enough for a machine that is busy.
	suiteTimeout = 15 * time.Minute
	specTimeout  = 5 * time.Minute
)

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == containerArgument {
		if err := runContainer(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	guest.Main(m, guest.Suite{Name: "e2e-upgrade", Timeout: suiteTimeout, Services: services})
}

func TestUpgrade(t *testing.T) { guest.RunSpecs(t, "Upgrade") }

// services are what the node serves.
func services() ([]any, error) { return []any{Machine{}, &Containers{}}, nil }

// shared is the testbed of all specs.
var shared = &testbed{}

// spec is one that runs: its context, and the testbed.
type spec struct {
	*testbed
	ctx context.Context
}

// checks is the body of a spec, with its timeout.
func checks(run func(*spec)) []any {
	return []any{SpecTimeout(specTimeout), func(ctx SpecContext) { run(&spec{shared, ctx}) }}
}

var _ = BeforeSuite(func(ctx SpecContext) {
	s := &spec{shared, ctx}
	s.folder = guest.SuiteFolder()
	DeferOnFailure(s.dump, NodeTimeout(specTimeout))
	scenario.Step("an NFS server, a cloud and a node with a kernel of its own start", s.boot)
}, NodeTimeout(specTimeout))

var _ = Describe("Volumes of pods that run while their node is upgraded", Ordered, Label("upgrade", "volumes", "node"), func() {
	BeforeAll(func(ctx SpecContext) { installed(&spec{shared, ctx}) }, NodeTimeout(specTimeout))

	It("are mounted by the earlier agent", checks(mountedEarlier))
	It("stay while the manager is replaced, and while the node has no agent", checks(betweenAgents))
	//proves:csi/upgrade
	It("are taken over by the new agent, but for those whose pods went in between", checks(takenOver))
	//proves:csi/upgrade
	It("are shared with new pods, and with containers that start again", checks(usedOn))
	It("of nodes' disks have new objects, and the earlier ones can be removed", checks(renamed))
	//proves:csi/upgrade
	It("are unmounted with their pods, and nothing is left of either layout", checks(unmounted))
})
