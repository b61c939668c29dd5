package nodemanager

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	nfsdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/csitest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

const (
	// killedShare is a directory of a server, by the nfs driver.
	killedShare  = "csi nfs"
	killedServer = "192.0.2.7"
)

func (n *killedNode) servers() mounttest.Servers {
	return mounttest.Servers{Root: n.path("servers")}
}

// shares returns the volume type for nfs volumes, and the driver.
func (n *killedNode) shares() (nfs.Plugin, *nfsdriver.Driver, error) {
	servers, folder := nfsdriver.NewShares(n.servers()), filepath.Join(n.root(), "nfs")
	plain, err := nfs.New(servers, folder)
	if err != nil {
		return nfs.Plugin{}, nil, err
	}
	driver, err := nfsdriver.New(servers, filepath.Join(n.root(), "staged", stowagev1alpha1.NFSDriver))
	if err != nil {
		return nfs.Plugin{}, nil, err
	}
	return plain, driver.WithEarlier(folder), nil
}

func (*killedNode) shareSource() corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.NFSDriver, VolumeHandle: "share", VolumeAttributes: map[string]string{
			stowagev1alpha1.ServerAttribute: killedServer, stowagev1alpha1.PathAttribute: "/directory",
		},
	}}
}

// mountEarlierShare mounts the pod's volume as an agent of the layout before did.
func (n *killedNode) mountEarlierShare(t *testing.T) {
	t.Helper()
	volume := &corev1.PersistentVolume{}
	volume.Spec.PersistentVolumeSource = n.shareSource()
	earlier := csitest.EarlierShare{Root: n.root(), Mounter: n.servers(), Spec: volumes.Spec{PersistentVolume: volume}}
	mustDo(t, earlier.Mount(t.Context(), n.inPod("volumes", "kubernetes.io~nfs", "pv")))
}

// mustBeUpgraded fails unless the node looks as without an upgrade, apart from what the pod has
// of the layout before. Its directory there leads to an empty mount point that a kill may leave.
func (n *killedNode) mustBeUpgraded(t *testing.T, wanted []string, when string) {
	t.Helper()
	had := func(line string) bool {
		return strings.Contains(line, "kubernetes.io~nfs") || strings.HasPrefix(line, filepath.Join(n.root(), "nfs")+"/")
	}
	got := n.look(t)
	if !slices.ContainsFunc(got, func(line string) bool { return had(line) && strings.HasPrefix(line, "mounted: ") }) {
		t.Fatalf("%s: the pod lost its mount", when)
	}
	mustBeSame(t, slices.DeleteFunc(got, had), wanted, when)
}

// sweep has volumes unstaged that a pod of the layout before had last.
func (n *killedNode) sweep(t *testing.T) {
	t.Helper()
	_, shares, err := n.shares()
	mustDo(t, err)
	caller, err := csitest.NewCaller(n.root(), n.path("base"), shares)
	mustDo(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		csi.New(caller).Watch(ctx, nil)
	}()
	nodetest.Eventually(t, "the volume is unstaged", func() bool {
		left, err := filepath.Glob(filepath.Join(n.root(), "plugins", "kubernetes.io", "csi", stowagev1alpha1.NFSDriver, "*"))
		return err == nil && len(left) == 0
	})
	cancel()
	<-ended
}

//proves:csi/upgrade
func TestAnAgentThatIsUpgradedUsesOnAShareOfTheLayoutBefore(t *testing.T) {
	mounttest.NeedsRoot(t)
	n := newKilledNode(t, killedShare)
	should := n.learn(t)
	n.Version, n.Leaves = 1, false
	n.mountEarlierShare(t)
	before := n.idsOf(t)

	n.mustSettle(t, "upgraded")

	n.mustBeUpgraded(t, should.shown[1], "upgraded")
	after := n.idsOf(t)
	for path, id := range before {
		if after[path] != id {
			t.Errorf("%s was mounted again", path)
		}
	}
	n.Leaves = true
	n.mustSettle(t, "without the pod")
	n.sweep(t)
	n.mustBe(t, should.empty, "without the pod")
}

//proves:csi/upgrade
func TestANodeManagerThatIsKilledWhileItTakesOverAShareLosesAndLeaksNothing(t *testing.T) {
	mounttest.NeedsRoot(t)
	n := newKilledNode(t, killedShare)
	should := n.learn(t)
	takeover, teardown := &work{name: "takeover"}, &work{name: "teardown"}
	for step, stride := kills(t); !takeover.over || !teardown.over; step += stride {
		n.Version, n.Leaves = step%2, false
		n.mountEarlierShare(t)
		when := n.killedAt(t, takeover, step)
		n.Leaves = step%3 == 0
		n.mustSettle(t, when)
		if !n.Leaves {
			n.mustBeUpgraded(t, should.shown[n.Version], when)
			n.Leaves = true
			n.mustSettle(t, when)
		}
		n.sweep(t)
		n.mustBe(t, should.empty, when)

		n.mountEarlierShare(t)
		when = n.killedAt(t, teardown, step)
		n.mustSettle(t, when)
		n.sweep(t)
		n.mustBe(t, should.empty, "of the layout before, "+when)
	}
}
