// Package upstream_test is `make e2e-upstream`: Kubernetes' own end-to-end tests of
// storage against Stowage, as each overlay installs it. They run on the nodes of
// `make e2e`, where pods find stand-ins for the images that the tests ask for.
//
// What each backend is claimed to do is in drivers, which specs run on which nodes in
// suites.yaml, and which don't, with the reason, in skips.yaml. Specs which need what a
// driver file doesn't claim skip themselves; the report counts them by reason.
package upstream_test

import (
	"cmp"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// suiteTimeout is how long one overlay may take.
	suiteTimeout = 90 * time.Minute
	// stayTimeout is how long a cluster stays that was asked to.
	stayTimeout = 24 * time.Hour
	// startTimeout is how long the cluster may take to come up.
	startTimeout = 12 * time.Minute

	// growing is a file system that grows while it is mounted also where root lacks
	// CAP_SYS_RESOURCE, as on the machine. `make e2e-local` grows ext4.
	growing = "xfs"
)

var (
	cluster *kube.Cluster
	chosen  *selection
)

func TestMain(m *testing.M) {
	suite := guest.Suite{Name: "upstream-" + overlay(), Timeout: suiteTimeout, Services: kube.Services}
	if stays() {
		suite.Timeout = stayTimeout
	}
	guest.Main(m, suite)
}

func TestUpstream(t *testing.T) {
	guest.RunSpecs(t, "Kubernetes' own tests of storage, with Stowage from config/"+overlay())
}

// `make e2e-upstream-check` runs it. An entry that matches no spec of e2e.test fails.
func TestTheListsMatchTheSpecsThatThereAre(t *testing.T) {
	if _, err := apiserver.Binary("e2e.test"); err != nil {
		t.Skipf("NOT RUN: e2e.test is missing: %v", err)
	}
	for _, which := range []string{"all", "ci"} {
		t.Setenv("STOWAGE_UPSTREAM", which)
		selected, err := newSelection(t.Context(), overlay())
		if err != nil {
			t.Fatal(err)
		}
		selected.print()
	}
}

// stays reports whether the cluster is to stay after the specs.
func stays() bool { return os.Getenv("STOWAGE_E2E_STAY") != "" }

// overlay is the folder of config/ that is installed.
func overlay() string { return cmp.Or(os.Getenv("STOWAGE_E2E_OVERLAY"), kube.BesideIt) }

var _ = Describe("Kubernetes' own tests of storage", Ordered, ContinueOnFailure, func() {
	BeforeAll(func(ctx SpecContext) {
		var err error
		if chosen, err = newSelection(ctx, overlay()); err != nil {
			Fail(err.Error())
		}
		chosen.print()
		cluster = kube.Up(ctx, guest.SuiteFolder(), overlay(), kube.Differences{
			Archives: []string{"upstream.tar"}, FSType: growing,
		})
		scenario.Step("the CRDs of snapshots are installed, and a controller binds them", func() error { return serveSnapshots(ctx) })
	}, NodeTimeout(startTimeout))

	for _, one := range suites() {
		It("passes in suite "+one.Name, Label("upstream"), func(ctx SpecContext) {
			if len(chosen.specs[one.Name]) == 0 {
				Skip("FOCUS leaves none of its specs")
			}
			scenario.Step(fmt.Sprintf("all of %d specs hold, %d at once", len(chosen.specs[one.Name]), one.Parallel),
				func() error { return run(ctx, one) })
		}, SpecTimeout(suiteTimeout))
	}

	It("leaves no volume", Label("upstream"), func(ctx SpecContext) {
		scenario.Step("all that the specs made is gone", func() error {
			return scenario.Within(ctx, kube.Patience, func() error { return nothingIsLeft(ctx) })
		})
	}, SpecTimeout(startTimeout))

	if stays() {
		It("the cluster stays until Ctrl-C", Label("upstream"), func(ctx SpecContext) {
			if err := cluster.Stay(ctx); err != nil {
				Fail(err.Error())
			}
		})
	}

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() && cluster != nil && cluster.Client != nil {
			AddReportEntry("objects", cluster.Describe(ctx, kube.System, "failed"))
		}
	}, NodeTimeout(startTimeout))
})
