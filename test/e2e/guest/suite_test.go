// Package guest_test is `make e2e-local` and `make e2e-node`: tests of the project's own
// packages in a User Mode Linux guest, as the programs that `go test -c` makes of them.
// A guest has what the kernel of the machine may not have, and tests may break it. A test
// that is skipped there fails the suite.
package guest_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// targetVariable names the target of the Makefile that runs.
	targetVariable = "STOWAGE_E2E_TARGET"
	// bootTimeout is for the guest's start, and specMargin what a spec has beside the tests
	// of its package.
	bootTimeout = 5 * time.Minute
	specMargin  = time.Minute
	// memory is what the guest has: disks of tests are in it.
	memory = "3G"
	// agentMemory is the limit of the agent's container: see config/node/daemonset.yaml.
	agentMemory = 512 << 20
)

// target is one of the Makefile's: tests of packages, in the order in which they run, and
// how long those of one package and all of them may take.
type target struct {
	patience, timeout time.Duration
	packages          []Package
}

var targets = map[string]target{
	// Local volumes and disks for which a kernel must do what that of the machine may not:
	// keep project quotas, let root grow a mounted ext4, and lose a disk that is mounted.
	"e2e-local": {patience: 5 * time.Minute, timeout: 20 * time.Minute, packages: []Package{
		{Path: "internal/quota"},
		{Path: "internal/device/clouddisk"},
		{Path: "internal/device/filesystem"},
		{Path: "internal/device/loopdev"},
		{Path: "internal/node/localdisk/store", Run: "Quota|Inodes"},
		{Path: "internal/nodemanager/volumes/csi", Run: "Gr[eo]w|Scsi"},
		{Path: "internal/nodemanager/volumes/emptydir", Run: "Quota"},
		// What pods can make deep, in the memory of the node agent's container.
		{Path: "internal/mount/filetree", Run: "Deep|Slices", Memory: agentMemory},
		{Path: "internal/duplicate", Run: "SeveralNames", Memory: agentMemory},
	}},
	// The whole node side. The guest's kernel is older than most machines', with a mount
	// table that nothing but the tests depends on.
	"e2e-node": {patience: 15 * time.Minute, timeout: 40 * time.Minute, packages: []Package{
		{Path: "internal/mount"},
		{Path: "internal/mount/safepath"},
		{Path: "internal/mount/filetree"},
		{Path: "internal/mount/remote"},
		{Path: "internal/device/clouddisk"},
		{Path: "internal/device/filesystem"},
		{Path: "internal/device/loopdev"},
		{Path: "internal/ownership"},
		// What is killed before each of its steps is `make kill-matrix`.
		{Path: "internal/nodemanager", Skip: "AfterAKill|ThatIsKilled"},
		{Path: "internal/nodemanager/poddir"},
		{Path: "internal/nodemanager/subpath"},
		{Path: "internal/node/localdisk/store"},
		{Path: "internal/node/localdisk/volumeagent"},
		{Path: "internal/nodemanager/volumes"},
		{Path: "internal/nodemanager/volumes/apidata"},
		{Path: "internal/nodemanager/volumes/atomicdir"},
		{Path: "internal/nodemanager/volumes/csi"},
		{Path: "internal/nodemanager/volumes/emptydir"},
		{Path: "internal/nodemanager/volumes/hostpath"},
		{Path: "internal/nodemanager/volumes/inlinenfs"},
		{Path: "internal/nodemanager/volumes/local"},
		{Path: "internal/nodemanager/volumes/nfs"},
	}},
}

var (
	// targetName and running are the target that runs.
	targetName = cmp.Or(os.Getenv(targetVariable), "e2e-local")
	running    = targets[targetName]
	// node is the guest, and all how its tests ended.
	node *guest.Node
	all  report
)

func TestMain(m *testing.M) {
	guest.Main(m, guest.Suite{
		Name: targetName, Timeout: running.timeout, Services: func() ([]any, error) { return []any{Tests{}}, nil },
	})
}

func TestGuest(t *testing.T) { guest.RunSpecs(t, "Packages in a guest") }

var _ = BeforeSuite(func(ctx SpecContext) {
	folder := guest.SuiteFolder()
	DeferOnFailure(func(ctx SpecContext) { guest.Dump(ctx, GinkgoWriter, folder, nil, node) }, NodeTimeout(bootTimeout))
	scenario.Step("a node with a kernel of its own starts", func() error {
		booted, err := guest.Boot(ctx, folder, 1, guest.Hardware{Memory: memory})
		if err == nil {
			node = booted[0]
		}
		return err
	})
	scenario.Step("it has modules, a disk for tests to write to, and the sources", func() error {
		return node.Call(ctx, "Tests.Prepare", apiserver.Repository(), &guest.Nothing{})
	})
}, NodeTimeout(bootTimeout))

// A test that fails may leave mounts, which the tests of other packages don't depend on.
var _ = Describe("In a guest", Label("node"), func() {
	for _, tested := range running.packages {
		It("the tests of "+tested.Path+" pass", SpecTimeout(running.patience+specMargin), func(ctx SpecContext) {
			scenario.Step("the tests of "+tested.Path+" hold", func() error { return run(ctx, tested) })
		})
	}
})

var _ = ReportAfterSuite("sum of the guest's tests", func(Report) { fmt.Printf("\nIn the guest: %s.\n", all) })

// run has the node run tests of one package.
func run(ctx context.Context, tested Package) error {
	tested.Program = filepath.Join(apiserver.Repository(), "bin", "test", targetName, path.Base(tested.Path)+".test")
	tested.Path = filepath.Join(apiserver.Repository(), tested.Path)
	var output Output
	if err := node.CallWithin(ctx, running.patience, "Tests.Run", tested, &output); err != nil {
		return err
	}
	got := read(output.Text)
	all = all.and(got)
	problem := got.problem(output.Failed)
	if problem != nil {
		GinkgoWriter.Println(output.Text)
	}
	AddReportEntry("tests", got.String())
	return problem
}
