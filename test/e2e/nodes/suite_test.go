// Package nodes_test is `make e2e-kubelet`: the nodes that end-to-end tests with pods run
// on, by themselves, without Stowage. One is this machine, in namespaces of the test's
// own, and two are User Mode Linux guests; each runs containerd and a kubelet, beside
// the control plane of a stock Kubernetes. Where `make e2e` fails and this does not, the
// testbed is not the reason.
package nodes_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

const (
	// suiteTimeout and specTimeout are long enough for a machine that is busy.
	suiteTimeout = 10 * time.Minute
	specTimeout  = 4 * time.Minute
	// shown is where nodes find a folder of the machine's.
	shown = "/run/shown"
)

// all is the cluster that all specs share.
var all = &kube.Cluster{}

func TestMain(m *testing.M) {
	guest.Main(m, guest.Suite{Name: "e2e-kubelet", Timeout: suiteTimeout, Services: services})
}

func TestNodes(t *testing.T) { guest.RunSpecs(t, "Nodes") }

// services are what each node serves.
func services() ([]any, error) { return []any{&kubenode.Kubernetes{}}, nil }

// spec is one that runs: its context, and the cluster.
type spec struct {
	*kube.Cluster
	ctx context.Context
}

var _ = BeforeSuite(func(ctx SpecContext) {
	s := &spec{all, ctx}
	s.Folder = guest.SuiteFolder()
	scenario.Step("two guests boot", func() error { return s.Boot(ctx) })
	scenario.Step("a stock control plane starts", func() error { return s.StartControlPlane(ctx, "") })
	scenario.Step("containerd and a kubelet start on the machine and in the guests", func() error {
		return s.Join(ctx, services, kubenode.Cluster{Folders: map[string]string{shown: s.Folder.Logs()}})
	})
	scenario.Step("all take the images", func() error { return s.Load(ctx, "pause.tar", "busybox.tar") })
	scenario.Step("all are Ready", func() error {
		return s.Each(func(node *kubenode.Node) error {
			return scenario.Eventually(ctx, func() error { return s.IsReady(ctx, node.Name) })
		})
	})
}, NodeTimeout(specTimeout))

var _ = ReportAfterEach(func(ctx SpecContext, report SpecReport) {
	if report.Failed() {
		(&spec{all, ctx}).show()
	}
})

// show prints what explains a failure.
func (s *spec) show() {
	for _, what := range []string{"nodes", "pods", "events"} {
		output, err := s.kubectl("get", what, "--all-namespaces", "--output=wide")
		GinkgoWriter.Printf("\n%s:\n%s", what, output)
		if err != nil {
			GinkgoWriter.Println(err)
		}
	}
}

// node is what the API server knows of a node.
func (s *spec) node(name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, s.Client.Get(s.ctx, client.ObjectKey{Name: name}, node)
}
