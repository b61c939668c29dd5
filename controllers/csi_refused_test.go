package controllers

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi"
	"github.com/stowage-dev/stowage/internal/backend/csi/measured"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A StorageBackend of kind csi that can't be used", func() {
	DescribeTable("says so, and so does a claim of its class, with",
		func(change func(*stowagev1alpha1.CSIBackend), driver *refusing, says string) {
			w, object := withSocket(driver.serve())
			claim := Claim(InClass("kept"))
			change(object.Spec.CSI)
			w.create(object)
			w.settle()
			w.create(claim)

			w.settle()

			w.get(object)
			ready := meta.FindStatusCondition(object.Status.Conditions, stowagev1alpha1.ReadyCondition)
			Expect(ready.Status).To(Equal(metav1.ConditionFalse))
			Expect(ready.Message).To(ContainSubstring(says))
			Expect(w.condition(claim).Message).To(ContainSubstring(says))
			Expect(w.newEvents()).To(ContainElement(And(ContainSubstring("ProvisioningFailed"), ContainSubstring(says))))
		},
		Entry("a socket that isn't there", func(*stowagev1alpha1.CSIBackend) {}, (*refusing)(nil), "look whether its container runs beside the manager"),
		Entry("a driver with another name", func(*stowagev1alpha1.CSIBackend) {}, &refusing{name: "other.example.com"}, `is "other.example.com"`),
		Entry("a driver's node plug-in", func(*stowagev1alpha1.CSIBackend) {}, &refusing{name: csiDriver, nodeOnly: true}, "has no Controller service"),
		Entry("a driver that makes no volumes", func(*stowagev1alpha1.CSIBackend) {}, &refusing{name: csiDriver}, "CREATE_DELETE_VOLUME"),
		Entry("a Secret that isn't there", func(csi *stowagev1alpha1.CSIBackend) {
			csi.Secrets.Provision = &stowagev1alpha1.SecretReference{Name: "absent"}
		}, &refusing{name: csiDriver, can: csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}, "there is no Secret absent"),
	)
})

// withSocket is a cluster whose manager calls drivers, and the StorageBackend of one behind a socket, which isn't
// created yet.
func withSocket(path string) (*world, *stowagev1alpha1.StorageBackend) {
	GinkgoHelper()
	w, object := newWorld(reconciler.ClusterScope), csiBackend()
	w.served.Registry = callingDrivers()
	object.Spec.CSI.Endpoint, object.Spec.CSI.Timeout = "unix://"+path, metav1.Duration{Duration: time.Second}
	object.Spec.CSI.Secrets = stowagev1alpha1.CSISecrets{}
	return w, object
}

// callingDrivers has the kind that calls drivers.
func callingDrivers() *backend.Registry {
	GinkgoHelper()
	calls, err := measured.New(prometheus.NewRegistry(), logr.Discard())
	Expect(err).NotTo(HaveOccurred())
	return backend.NewRegistry(csi.NewKind(withoutSecrets{}, calls))
}

// refusing is a driver with a name and at most one ability. It makes no volume.
type refusing struct {
	csispec.UnimplementedIdentityServer
	csispec.UnimplementedControllerServer
	name string
	// nodeOnly: it has no Controller service.
	nodeOnly bool
	can      csispec.ControllerServiceCapability_RPC_Type
}

// serve serves it until the spec ends, and returns the path of its socket. Without a driver nothing is
// there.
func (r *refusing) serve() string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "csi") // paths of sockets have 107 bytes at most
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	path := filepath.Join(dir, "csi.sock")
	if r == nil {
		return path
	}
	Expect(serveDriver(context.Background(), path, r)).NotTo(BeNil())
	return path
}

// plugin is a driver's Controller.
type plugin interface {
	csispec.IdentityServer
	csispec.ControllerServer
}

// serveDriver serves a driver at a socket until the spec ends, or it is stopped.
func serveDriver(ctx context.Context, path string, of plugin) *grpc.Server {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	Expect(err).NotTo(HaveOccurred())
	server := grpc.NewServer()
	csispec.RegisterIdentityServer(server, of)
	csispec.RegisterControllerServer(server, of)
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Stop)
	return server
}

func (r *refusing) GetPluginInfo(context.Context, *csispec.GetPluginInfoRequest) (*csispec.GetPluginInfoResponse, error) {
	return &csispec.GetPluginInfoResponse{Name: r.name}, nil
}

func (r *refusing) GetPluginCapabilities(context.Context, *csispec.GetPluginCapabilitiesRequest) (*csispec.GetPluginCapabilitiesResponse, error) {
	if r.nodeOnly {
		return &csispec.GetPluginCapabilitiesResponse{}, nil
	}
	return &csispec.GetPluginCapabilitiesResponse{Capabilities: []*csispec.PluginCapability{{Type: &csispec.PluginCapability_Service_{
		Service: &csispec.PluginCapability_Service{Type: csispec.PluginCapability_Service_CONTROLLER_SERVICE},
	}}}}, nil
}

func (r *refusing) ControllerGetCapabilities(context.Context, *csispec.ControllerGetCapabilitiesRequest) (*csispec.ControllerGetCapabilitiesResponse, error) {
	return &csispec.ControllerGetCapabilitiesResponse{Capabilities: []*csispec.ControllerServiceCapability{
		{Type: &csispec.ControllerServiceCapability_Rpc{Rpc: &csispec.ControllerServiceCapability_RPC{Type: r.can}}},
	}}, nil
}

// withoutSecrets is a cluster that has none.
type withoutSecrets struct{}

func (withoutSecrets) Secret(_ context.Context, name string) (map[string][]byte, error) {
	return nil, backend.Unavailable.Errorf("there is no Secret %s: create it", name)
}

func (withoutSecrets) Nodes(context.Context) ([]corev1.Node, error)          { return nil, nil }
func (withoutSecrets) CSINodes(context.Context) ([]storagev1.CSINode, error) { return nil, nil }
