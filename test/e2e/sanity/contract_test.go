package sanity_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	csibackend "github.com/stowage-dev/stowage/internal/backend/csi"
	"github.com/stowage-dev/stowage/internal/backend/csi/measured"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

// socketDriver is what the Controller service calls itself here: the backend csi takes no driver of
// Stowage's own.
const socketDriver = "socket.example.com"

// repeatAfter is how often a deletion is tried.
const repeatAfter = 10 * time.Millisecond

// contractsAfter are the subjects of the contract, by the suite that is the last of their backend.
var contractsAfter = map[string]Subject{
	"local-image-ext4":  {Name: "nfs-socket", Driver: socketDriver, Backend: shareBackend},
	"local-image-block": {Name: "local-socket", Driver: socketDriver, Backend: directoriesBackend},
	"gce-block":         {Name: "gce-socket", Driver: socketDriver, Backend: disksBackend},
}

// keepContract runs the contract of backends against the backend csi, whose driver is the Controller
// service of one of Stowage's own drivers, behind a socket.
func (s *testbed) keepContract(ctx context.Context, t *testing.T, of Subject) {
	plan := Plan{
		Subject: of, Kubeconfig: s.stowage.Folder.Kubeconfig(cluster.AdminUser), Base: s.stowage.Folder.Disks(), Folder: filepath.Join(s.machineDir(), "suites"),
	}
	served, err := plan.serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	opened := openSocket(t, of.Backend, plan.controllerSocket())
	tests := 0
	backendtest.Contract(t, func(t *testing.T) (backend.Backend, func(string) bool) {
		tests++
		one := &numbered{
			Backend: opened, of: served, number: fmt.Sprintf("%s-%d", of.Backend, tests),
			advisory: served.backend.Capabilities().Advisory, made: map[string]bool{},
		}
		t.Cleanup(func() { one.removeAll(context.WithoutCancel(ctx), t) })
		return one, func(id string) bool { return served.holds(ctx, t, one.handle(id)) }
	})
}

// openSocket opens the backend csi of a socket.
func openSocket(t *testing.T, name, socket string) backend.Backend {
	t.Helper()
	object := &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: socketDriver}}
	object.Spec.CSI = &stowagev1alpha1.CSIBackend{
		Driver: socketDriver, Endpoint: "unix://" + strings.TrimPrefix(socket, "unix:"), Timeout: metav1.Duration{Duration: callTime},
		Parameters: map[string]stowagev1alpha1.CSIParameter{stowagev1alpha1.BackendParameter: stowagev1alpha1.CSIParameter(name)},
	}
	calls, err := measured.New(prometheus.NewRegistry(), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := csibackend.NewKind(nothing{}, calls).Open(object)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// nothing is a cluster without Secrets, for a driver without topology.
type nothing struct{}

func (nothing) Secret(context.Context, string) (map[string][]byte, error) {
	return nil, errors.New("the driver needs no Secret")
}

func (nothing) Nodes(context.Context) ([]corev1.Node, error)          { return nil, nil }
func (nothing) CSINodes(context.Context) ([]storagev1.CSINode, error) { return nil, nil }

// numbered gives the volumes of one test names of its own: some storage makes no volume again under the
// name of one that was removed. CSI keeps no owner, so reconcilers check which claim's volume is copied.
type numbered struct {
	backend.Backend
	of     *served
	number string
	// advisory: capacities are labels, which CSI has no word for.
	advisory bool

	mu   sync.Mutex
	made map[string]bool
}

// name is that of a test's volume in calls.
func (n *numbered) name(id string) string {
	return "pvc-" + n.number + "-" + strings.TrimPrefix(id, "pvc-")
}

// handle is the id that the socket gives a test's volume.
func (n *numbered) handle(id string) string {
	if named.IsVolume(id) {
		return id
	}
	return backend.VolumeID(named.UID(n.of.Cluster, n.of.Name, "volume", n.name(id)), 1)
}

func (n *numbered) Capabilities() backend.Capabilities {
	without := n.Backend.Capabilities()
	without.Clones, without.Advisory = false, n.advisory
	return without
}

func (n *numbered) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	n.mu.Lock()
	n.made[n.handle(request.ID)] = true
	n.mu.Unlock()
	request.ID, request.Claim.UID = n.name(request.ID), types.UID(n.number+"-"+string(request.Claim.UID))
	return n.Backend.Provision(ctx, request)
}

func (n *numbered) Delete(ctx context.Context, id string) error {
	return n.Backend.Delete(ctx, n.handle(id))
}

func (n *numbered) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	request.ID = n.handle(request.ID)
	grown, err := backend.Expand(ctx, n.Backend, request)
	grown.Advisory = n.advisory
	return grown, err
}

// removeAll removes what a test left.
func (n *numbered) removeAll(ctx context.Context, t *testing.T) {
	t.Helper()
	gomega := NewWithT(t)
	for id := range n.made {
		gomega.Eventually(n.Backend.Delete).WithArguments(ctx, id).WithTimeout(callTime).WithPolling(repeatAfter).Should(Succeed())
	}
}

// holds reports whether the storage has a volume.
func (s *served) holds(ctx context.Context, t *testing.T, id string) bool {
	t.Helper()
	held, err := s.held(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(held, id)
}
