// Package googlenode is what a node has in Google's cloud for the CSI driver of Google's disks: a metadata
// server, and a program that registers the driver, as node-driver-registrar does. A node serves it to tests.
package googlenode

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
)

const (
	// Driver is the name of the driver.
	Driver = "pd.csi.storage.gke.io"
	// MetadataPort is that of nodes' metadata servers, as test/e2e/manifests/csi-driver says, too.
	MetadataPort = ":8686"
)

// Place is a node in the cloud.
type Place struct {
	Name, Project, Zone string
	// Folder is that of the node's kubelet, or of the agent in its place.
	Folder string
}

// GoogleNode is the metadata server and the registrar of one node.
type GoogleNode struct {
	registerapi.UnimplementedRegistrationServer
	metadata  *http.Server
	registrar *grpc.Server
	folder    string
}

// ServeMetadata serves the metadata of a node.
func (g *GoogleNode) ServeMetadata(of Place, _ *guest.Nothing) error {
	values := map[string]string{
		"instance/zone": "projects/1/zones/" + of.Zone, "instance/name": of.Name, "instance/machine-type": "projects/1/machineTypes/n1-standard-1",
		"project/project-id":                       of.Project,
		"instance/service-accounts/default/token":  `{"access_token":"any","token_type":"Bearer","expires_in":3600}`,
		"instance/service-accounts/default/scopes": "https://www.googleapis.com/auth/cloud-platform",
		"universe/universe-domain":                 "googleapis.com",
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", MetadataPort)
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

// Register registers the driver.
func (g *GoogleNode) Register(of Place, _ *guest.Nothing) error {
	g.folder = of.Folder
	socket := filepath.Join(g.folder, "plugins_registry", Driver+"-reg.sock")
	_ = os.Remove(socket) // of an earlier run
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	g.registrar = grpc.NewServer()
	registerapi.RegisterRegistrationServer(g.registrar, g)
	go func() { _ = g.registrar.Serve(listener) }()
	return nil
}

// Stop ends both. The driver is forgotten then.
func (g *GoogleNode) Stop(Place, *guest.Nothing) error {
	if g.registrar != nil {
		g.registrar.Stop()
	}
	if g.metadata != nil {
		return g.metadata.Close()
	}
	return nil
}

// Socket is that of the driver below a folder.
func Socket(folder string) string { return filepath.Join(folder, "plugins", Driver, "csi.sock") }

// GetInfo implements registerapi.RegistrationServer.
func (g *GoogleNode) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: Driver, SupportedVersions: []string{"1.0.0"}, Endpoint: Socket(g.folder)}, nil
}

// NotifyRegistrationStatus implements registerapi.RegistrationServer. A kubelet tries again by itself.
func (g *GoogleNode) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}
