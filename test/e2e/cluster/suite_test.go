// Package cluster_test is `make e2e`: Stowage in the cluster that users have. etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler run as they come, and so do
// containerd and the kubelet on three nodes: this machine, in namespaces of the test's own,
// and two User Mode Linux guests. Stowage is installed from an overlay of config/, with
// images that were loaded into containerd; pods write and read.
//
// A spec is a function over a namespace of its own. To add one, write it into a file of its
// own and name it in specs_test.go.
package cluster_test

import (
	"cmp"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/test/harness/googlenode"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
)

const (
	// suiteTimeout and specTimeout are long enough for a machine that is busy.
	suiteTimeout = 45 * time.Minute
	specTimeout  = 12 * time.Minute
	// stayTimeout is how long a cluster stays that was asked to.
	stayTimeout = 24 * time.Hour

	// processes run specs at once: more only slow each other down.
	processes = 5
)

// Names of nodes, of the image of pods, and of classes.
const (
	machine = kube.Machine
	node1   = kube.Node1
	node2   = kube.Node2
	busybox = kube.Busybox

	directories  = kube.Directories
	images       = kube.Images
	shared       = kube.Shared
	disks        = kube.Disks
	machineDisks = kube.MachineDisks
)

// cluster is the one that all specs share.
var cluster *kube.Cluster

func TestMain(m *testing.M) {
	suite := guest.Suite{Name: "e2e-" + overlay(), Processes: processes, Timeout: suiteTimeout, Services: services}
	if stays() {
		suite.Timeout = stayTimeout
	}
	guest.Main(m, suite)
}

func TestCluster(t *testing.T) { guest.RunSpecs(t, "Stowage from config/"+overlay()) }

// overlay is the folder of config/ that is installed first.
func overlay() string { return cmp.Or(os.Getenv("STOWAGE_E2E_OVERLAY"), kube.BesideIt) }

// services are what each node serves.
func services() ([]any, error) {
	return []any{&kubenode.Kubernetes{}, Disks{}, &Mounts{}, Signals{}, &googlenode.GoogleNode{}}, nil
}

// The first process brings the cluster up, and keeps it; it also runs the serial specs, which
// crash guests and switch controllers. The others connect.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	cluster = kube.Up(ctx, guest.SuiteFolder(), overlay(), kube.Differences{Services: services, Archives: googleArchives()})
}, func(ctx SpecContext) {
	if cluster != nil {
		return
	}
	var err error
	if cluster, err = kube.Connect(ctx, guest.SuiteFolder(), overlay()); err != nil {
		Fail(err.Error())
	}
}, NodeTimeout(specTimeout))
