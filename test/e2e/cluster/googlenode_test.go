package cluster_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kube"
)

const (
	googleDriver = "pd.csi.storage.gke.io"
	// metadataPort is that of nodes' metadata servers, as test/e2e/manifests/csi-driver says, too.
	metadataPort = ":8686"
)

// GoogleNode is what a node has in Google's cloud for the CSI driver: a metadata server, and a
// program that registers the driver with the kubelet, as node-driver-registrar does.
type GoogleNode struct {
	registerapi.UnimplementedRegistrationServer
	metadata  *http.Server
	registrar *grpc.Server
}

// ServeMetadata serves the metadata of a node of this name.
func (g *GoogleNode) ServeMetadata(name string, _ *guest.Nothing) error {
	values := map[string]string{
		"instance/zone": "projects/1/zones/" + kube.Zone, "instance/name": name, "instance/machine-type": "projects/1/machineTypes/n1-standard-1",
		"project/project-id":                       kube.Project,
		"instance/service-accounts/default/token":  `{"access_token":"any","token_type":"Bearer","expires_in":3600}`,
		"instance/service-accounts/default/scopes": "https://www.googleapis.com/auth/cloud-platform",
		"universe/universe-domain":                 "googleapis.com",
	}
	listener, err := net.Listen("tcp", metadataPort)
	if err != nil {
		return err
	}
	g.metadata = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		value, known := values[strings.TrimPrefix(r.URL.Path, "/computeMetadata/v1/")]
		if !known {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(value)) // a client that went away reads nothing
	})}
	go func() { _ = g.metadata.Serve(listener) }()
	return nil
}

// Register registers the driver with the node's kubelet.
func (g *GoogleNode) Register(string, *guest.Nothing) error {
	socket := filepath.Join(kubeletDir, "plugins_registry", googleDriver+"-reg.sock")
	_ = os.Remove(socket) // of an earlier run
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	g.registrar = grpc.NewServer()
	registerapi.RegisterRegistrationServer(g.registrar, g)
	go func() { _ = g.registrar.Serve(listener) }()
	return nil
}

// Stop ends both. The kubelet forgets the driver then.
func (g *GoogleNode) Stop(string, *guest.Nothing) error {
	if g.registrar != nil {
		g.registrar.Stop()
	}
	if g.metadata != nil {
		return g.metadata.Close()
	}
	return nil
}

// GetInfo implements registerapi.RegistrationServer.
func (g *GoogleNode) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: googleDriver, SupportedVersions: []string{"1.0.0"},
		Endpoint: filepath.Join(kubeletDir, "plugins", googleDriver, "csi.sock"),
	}, nil
}

// NotifyRegistrationStatus implements registerapi.RegistrationServer. The kubelet tries again by itself.
func (g *GoogleNode) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}
