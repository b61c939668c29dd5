package sockettest

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Registrar is the program that registers a driver.
type Registrar struct {
	registration.UnimplementedRegistrationServer
	// Info is what it says of the driver, and Hangs has it say nothing.
	Info  *registration.PluginInfo
	Hangs bool
	// Reported has what it is reported, in order.
	Reported chan *registration.RegistrationStatus
}

// NewRegistrar returns one for a driver of a name, whose socket is at a path.
func NewRegistrar(name, endpoint string) *Registrar {
	return &Registrar{
		Info:     &registration.PluginInfo{Type: registration.CSIPlugin, Name: name, Endpoint: endpoint, SupportedVersions: []string{"1.0.0"}},
		Reported: make(chan *registration.RegistrationStatus, 100),
	}
}

// Serve serves the registrar at a socket until the test ends, or stop is called.
func (r *Registrar) Serve(t testing.TB, path string) (stop func()) {
	t.Helper()
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, r)
	return serve(t, server, path)
}

// GetInfo implements the registration service.
func (r *Registrar) GetInfo(ctx context.Context, _ *registration.InfoRequest) (*registration.PluginInfo, error) {
	if r.Hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.Info, nil
}

// NotifyRegistrationStatus implements the registration service.
func (r *Registrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	r.Reported <- status
	return &registration.RegistrationStatusResponse{}, nil
}

// serve serves at a socket until the test ends, or stop is called: then the socket is gone, too.
func serve(t testing.TB, server *grpc.Server, path string) (stop func()) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server.Stop
}
