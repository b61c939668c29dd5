// Package nfs_test is `make e2e-nfs`: NFS volumes with a real kernel client and real
// servers. Two User Mode Linux guests are the nodes, and nfs-ganesha is the servers,
// which specs stop, freeze and start under load. First the node agent's volume type is
// driven directly; then a whole Stowage serves claims and pods, with its own agent on
// each node.
package nfs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// suiteTimeout and specTimeout are long enough for a machine that is busy.
	suiteTimeout = 15 * time.Minute
	specTimeout  = 5 * time.Minute
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == loadArgument {
		if err := writeLines(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	guest.Main(m, guest.Suite{Name: "e2e-nfs", Timeout: suiteTimeout, Services: services})
}

func TestNFS(t *testing.T) { guest.RunSpecs(t, "NFS") }

// services are what each node serves.
func services() ([]any, error) {
	driver, err := nfs.New(nfs.NewShares(remote.NewCalls()), filepath.Join(pluginDir, "staged"))
	if err != nil {
		return nil, err
	}
	caller, err := csi.NewCaller(csi.CallerOptions{Mounter: mount.Kernel{}, Root: pluginDir, Drivers: []drivers.Driver{driver}})
	if err != nil {
		return nil, err
	}
	return []any{&Plugin{plugin: csi.New(caller)}, &Load{}, MountCalls{}}, nil
}

// shared is the testbed of all specs.
var shared = &testbed{written: map[string]string{}}

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
	scenario.Step("two NFS servers and two nodes with a kernel of their own start", s.boot)
}, NodeTimeout(specTimeout))

// Specs are in this order because the nodes have no NFS client before the second one.
var _ = Describe("NFS volumes", Ordered, Label("nfs", "volumes"), func() {
	It("are refused by a kernel that has no NFS client", checks(noClient))
	Context("of nodes with a client", func() {
		BeforeAll(func(ctx SpecContext) { (&spec{shared, ctx}).loadModules() })
		//proves:nfs/readOnly
		It("are shared by pods on two nodes", checks(manyPods))
		//proves:nfs/versions nfs/mountOptions
		It("have each version of the protocol, or say what is wrong with them", checks(versions))
		It("lose nothing when a server stops and starts under load", checks(restarted))
		//proves:nfs/hangs
		It("hold up themselves alone, and not for ever, when their server hangs", Label("slow"), checks(silent))
		It("are unmounted when the server has lost their directory", checks(stale))
		It("leave no mounts, and all that was written", checks(cleaned))
		Context("served by a whole Stowage", Label("stowage"), func() {
			BeforeAll(func(ctx SpecContext) { installed(&spec{shared, ctx}) }, NodeTimeout(specTimeout))
			//proves:nfs/claim
			It("are made for a claim of pods on two nodes", checks(claimed))
			//proves:nfs/pod nfs/claim
			It("are those that pods and volume objects name on a server", checks(named))
			//proves:inline/folder inline/record inline/crash
			It("are a pod's own on a backend's share", checks(unclaimed))
			//proves:nfs/hangs
			It("stay while their server stops and starts and pods write", checks(stopped))
			//proves:nfs/hangs
			It("come and go while their server is silent and an agent is killed", Label("slow"), checks(away))
			//proves:nfs/hangs
			It("leave an agent its memory, and others their turn, when fifty wait for a silent server", Label("slow"), checks(crowded))
			It("are refused to new pods when their directory was replaced on the server", checks(replaced))
			It("are deleted, archived or kept with their claims", checks(deleted))
			It("leave nothing but what was to be kept", checks(left))
		})
	})
})
