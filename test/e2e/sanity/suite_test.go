// Package sanity_test is `make test-sanity`: csi-sanity, the conformance tests of the
// Container Storage Interface, against each of Stowage's drivers.
//
// The Node and Identity services are those of the real node agent, on the sockets on
// which a kubelet finds them: one agent runs on the machine itself, for local volumes and
// disks, and one in a User Mode Linux guest, whose kernel mounts NFS. The Controller
// service is that of the real manager, on the machine. In the guest the suite serves it itself,
// by the same package. The storage is local volumes, gce-mock and nfs-ganesha. No spec may
// be skipped but where what it needs isn't claimed.
//
// csi-sanity is a suite of Ginkgo itself, one for each kind of volume: this program runs it
// in processes of their own, on the machine and in the guest. Each is a spec here.
package sanity_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// suiteTimeout, startTimeout and specTimeout are long enough for a machine that is
	// busy. A spec may wait for others of its lane.
	suiteTimeout = 20 * time.Minute
	startTimeout = 4 * time.Minute
	specTimeout  = 12 * time.Minute

	// sanityArgument has this program run csi-sanity once, and end.
	sanityArgument = "csi-sanity"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == sanityArgument {
		if err := runSanity(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	guest.Main(m, guest.Suite{Name: "sanity", Timeout: suiteTimeout, Services: services})
}

// services are what a node can be asked.
func services() ([]any, error) { return []any{&Host{}}, nil }

// TestSanity describes the specs itself: where this program runs csi-sanity, Ginkgo must
// know no others.
func TestSanity(t *testing.T) {
	describe(t)
	guest.RunSpecs(t, "Conformance with CSI")
}

func describe(t *testing.T) {
	Describe("csi-sanity", Ordered, ContinueOnFailure, Label("sanity"), func() {
		s := &testbed{outcomes: map[string]chan Outcome{}}
		total := Outcome{}
		BeforeAll(func(ctx SpecContext) {
			s.start(ctx, guest.SuiteFolder())
			s.runQueues(context.WithoutCancel(ctx))
		}, NodeTimeout(startTimeout))
		for _, one := range subjects() {
			It("passes for "+one.Name, SpecTimeout(specTimeout), func(ctx SpecContext) {
				var got Outcome
				Eventually(ctx, s.outcomes[one.Name]).Should(Receive(&got))
				total.Specs = append(total.Specs, got.Specs...)
				total.Claims = append(total.Claims, got.Claims...)
				fmt.Println(got.summary(one.Name))
				scenario.Step("csi-sanity passes for "+one.Name, got.problem)
			})
			// csi-sanity must have ended for all volumes of a backend: it finds what others make there.
			if about, last := contractsAfter[one.Name]; last {
				It("the contract of backends is kept by a driver behind a socket: "+about.Name, SpecTimeout(specTimeout), func(ctx SpecContext) {
					Expect(t.Run(about.Name, func(t *testing.T) { s.keepContract(ctx, t, about) })).To(BeTrue())
				})
			}
		}
		It("leaves nothing mounted", func(ctx SpecContext) {
			scenario.Step("nothing is mounted any more", func() error { return s.nothingMounted(ctx) })
		})
		AfterAll(func() { fmt.Printf("\n%s\n", total) })
	})
}
