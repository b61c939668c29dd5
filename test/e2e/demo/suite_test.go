// Package demo_test is `make demo`: the life of volumes, in plain sentences. It
// starts a whole Stowage in a fresh folder, shows what an administrator and a user type,
// and checks each outcome against the API server, the mount table and the disk.
//
// The chapters are the specs of one ordered container: each continues where the one
// before ended, and after a failure the rest is skipped. The suite leaves no mount, no
// process and no folder, also after a failure or Ctrl-C.
package demo_test

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/owned"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

const (
	// chapterTime is how long one chapter may take, on a busy machine.
	chapterTime = 6 * time.Minute
	// startTime is how long the start, and the end, of the cluster may take.
	startTime = 3 * time.Minute
)

func TestDemo(t *testing.T) {
	if os.Getenv("STOWAGE_TEST_DEMO") == "" {
		t.Skip("make demo runs this")
	}
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	if err := cluster.EnsureOwnMounts(); err != nil {
		t.Fatal(err)
	}
	endOnHangUp()
	specs.Run(t, "Stowage, from a claim to a mounted directory and back")
}

// endOnHangUp treats a closed terminal as Ctrl-C, which Ginkgo cleans up after.
func endOnHangUp() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // this process is there
		}
	}()
}

var _ = Describe("The life of a volume", Ordered, Label("demo"), func() {
	s := &scenario{began: time.Now(), about: "nodes"}

	BeforeAll(func(ctx SpecContext) {
		folder, err := owned.Folder("demo")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(owned.Release, folder)
		dir := filepath.Join(folder, "cluster")
		DeferCleanup(func(ctx SpecContext) error { return cluster.Remove(ctx, dir) }, NodeTimeout(startTime))
		fmt.Printf("\n\nThe manifests are in test/e2e/demo/manifests.\n\n  First a cluster of one node, in %s:\n\n", dir)
		s.cluster, err = cluster.Start(ctx, cluster.Options{Dir: dir, Step: cluster.PrintStep})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) error { return s.cluster.Stop(ctx) }, NodeTimeout(startTime))
	}, NodeTimeout(startTime))

	for _, chapter := range []struct {
		title string
		run   func(*scenario)
	}{
		{"(a) A volume made by hand finds its claim", staticVolume},
		{"(b) A volume is made for a claim", dynamicVolume},
		{"(c) The pod goes, the data stays", secondPod},
		{"(d) The claim goes: the volume's policy decides", reclaim},
		{"(e) A claim that nothing fits says why it waits", waiting},
		{"(e, continued) Mistakes are answered where they are made", mistakes},
		{"(f) Manager and node agent are killed in the middle", crash},
		{"(g) Volumes on an NFS server", nfsShare},
		{"(h) Volumes that keep to their size", images},
		{"(i) A volume that begins as a copy", clones},
		{"(j) Disks that follow their pods", disks},
		{"(k) One pod with every type of volume", everyKind},
	} {
		It(chapter.title, func(ctx SpecContext) {
			fmt.Printf("\n%s\n\n", chapter.title)
			s.ctx = ctx
			chapter.run(s)
		}, SpecTimeout(chapterTime))
	}

	JustAfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			s.dump(ctx)
		}
	}, NodeTimeout(time.Minute))

	AfterAll(func() {
		if !CurrentSpecReport().Failed() {
			fmt.Printf("\nAll %d checks held, in %.0f s.\n", s.checks, time.Since(s.began).Seconds())
		}
	})
})
