package csi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// kubelet does to a driver's registration what a kubelet does when it finds its socket.
type kubelet struct {
	client registerapi.RegistrationClient
}

func newKubelet(t *testing.T, server *Server) kubelet {
	return kubelet{registerapi.NewRegistrationClient(dial(t, server.register))}
}

// register registers the driver, or refuses it, and sends it the result. It returns what
// the driver reports about the node.
func (k kubelet) register(t *testing.T, refusal string) (*csispec.NodeGetInfoResponse, error) {
	t.Helper()
	info, err := k.client.GetInfo(t.Context(), &registerapi.InfoRequest{})
	if err != nil {
		return nil, err
	}
	if info.GetType() != registerapi.CSIPlugin || info.GetName() != driverName || len(info.GetSupportedVersions()) != 1 || info.GetSupportedVersions()[0] != "1.0.0" {
		t.Errorf("the driver registers as %v", info)
	}
	node, err := csispec.NewNodeClient(dial(t, info.GetEndpoint())).NodeGetInfo(t.Context(), &csispec.NodeGetInfoRequest{})
	if err != nil {
		return nil, err
	}
	_, err = k.client.NotifyRegistrationStatus(t.Context(), &registerapi.RegistrationStatus{PluginRegistered: refusal == "", Error: refusal})
	return node, err
}

func (k kubelet) mustRegister(t *testing.T) {
	t.Helper()
	await(t, "the kubelet registers the driver", func() error {
		_, err := k.register(t, "")
		return err
	})
}

func wantReady(t *testing.T, server *Server) {
	t.Helper()
	await(t, "it is ready", func() error { return server.Ready(nil) })
	if err := server.Alive(httptest.NewRequest(http.MethodGet, "/healthz", http.NoBody)); err != nil {
		t.Errorf("it isn't alive: %v", err)
	}
}

func wantUnready(t *testing.T, server *Server, says string) {
	t.Helper()
	await(t, "it isn't ready, as "+says, func() error {
		if err := server.Ready(nil); err == nil || !strings.Contains(err.Error(), says) {
			return errors.Join(errors.New("it says something else"), err)
		}
		return nil
	})
}

func TestReadyIsWhatAKubeletSays(t *testing.T) {
	w := startWorld(t, &plainDriver{}, worldOptions{})
	wantUnready(t, w.Server, "waiting for the kubelet to register "+driverName)
	kubelet := newKubelet(t, w.Server)
	await(t, "the kubelet refuses", func() error {
		_, err := kubelet.register(t, "topology collision")
		return err
	})
	wantUnready(t, w.Server, "topology collision")
	kubelet.mustRegister(t)
	wantReady(t, w.Server)
}

func TestSocketsAreRootsAlone(t *testing.T) {
	w := startWorld(t, &plainDriver{}, worldOptions{})
	newKubelet(t, w.Server).mustRegister(t)
	for path, want := range map[string]os.FileMode{
		w.endpoint: os.ModeSocket | socketMode, w.register: os.ModeSocket | socketMode, filepath.Dir(w.endpoint): os.ModeDir | socketDirMode,
	} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
}

func TestAfterARestartTheKubeletFindsTheDriverAgain(t *testing.T) {
	dir := kubeletDir(t)
	for range 2 {
		w := startWorld(t, &plainDriver{}, worldOptions{dir: dir})
		newKubelet(t, w.Server).mustRegister(t)
		wantReady(t, w.Server)
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		for _, path := range []string{w.endpoint, w.register} {
			if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s was left: %v", path, err)
			}
		}
	}
}

func TestWhatAKilledServerLeftIsReplaced(t *testing.T) {
	server := newWorld(t, &plainDriver{}, worldOptions{})
	hidden := filepath.Join(filepath.Dir(server.endpoint), ".csi")
	for _, path := range []string{server.endpoint, server.register, hidden} {
		stale(t, path)
	}
	start(t, server)
	newKubelet(t, server).mustRegister(t)
	wantReady(t, server)
}

func TestALivingServerIsLeftAlone(t *testing.T) {
	server := newWorld(t, &plainDriver{}, worldOptions{})
	if err := os.MkdirAll(filepath.Dir(server.endpoint), 0o750); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", server.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, server)
	wantUnready(t, server, "another process listens at "+server.endpoint)
	if err := server.Alive(httptest.NewRequest(http.MethodGet, "/healthz", http.NoBody)); err != nil {
		t.Errorf("it wants to be started again: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(server.endpoint); err != nil {
		t.Errorf("the other's socket is gone: %v", err)
	}
	other.Close()
}

func TestASecondAgentWaitsUntilTheFirstIsGone(t *testing.T) {
	first := startWorld(t, &plainDriver{}, worldOptions{})
	second := newWorld(t, &plainDriver{}, worldOptions{dir: first.dir})
	start(t, second)
	wantUnready(t, second, "another node agent has "+filepath.Dir(first.endpoint))
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	newKubelet(t, second).mustRegister(t)
	wantReady(t, second)
}

func TestWhatIsNoSocketIsNeverRemoved(t *testing.T) {
	server := newWorld(t, &plainDriver{}, worldOptions{})
	if err := os.MkdirAll(filepath.Dir(server.endpoint), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(server.endpoint, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop := start(t, server)
	wantUnready(t, server, "isn't a socket")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(server.endpoint); string(data) != "mine" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

func TestWhatIsRemovedIsMadeAnew(t *testing.T) {
	removals := map[string]func(*Server) string{
		"the driver's socket":       func(s *Server) string { return s.endpoint },
		"the driver's folder":       func(s *Server) string { return filepath.Dir(s.endpoint) },
		"the registration":          func(s *Server) string { return s.register },
		"the registrations' folder": func(s *Server) string { return filepath.Dir(s.register) },
	}
	for name, of := range removals {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t, &plainDriver{}, worldOptions{})
			newKubelet(t, w.Server).mustRegister(t)
			// The server may make its socket again during the removal, and a folder that isn't empty stays.
			await(t, "it is removed", func() error { return os.RemoveAll(of(w.Server)) })
			await(t, "it is there again", func() error {
				_, err := os.Lstat(of(w.Server))
				return err
			})
			newKubelet(t, w.Server).mustRegister(t)
			wantReady(t, w.Server)
		})
	}
}

func TestASocketThatTookTheOwnsPlaceIsLeft(t *testing.T) {
	w := startWorld(t, &plainDriver{}, worldOptions{})
	mine, err := listen(t.Context(), filepath.Join(w.dir, "mine.sock"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(mine.path); err != nil {
		t.Fatal(err)
	}
	stale(t, mine.path)
	if err := mine.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(mine.path); err != nil {
		t.Errorf("another's socket was removed: %v", err)
	}
}

func TestAnotherZoneIsToldToTheKubelet(t *testing.T) {
	zone := atomic.Value{}
	zone.Store("a")
	inform := func(context.Context) (Info, error) {
		return Info{NodeID: "n1", Topology: map[string]string{"zone": zone.Load().(string)}}, nil
	}
	w := startWorld(t, &plainDriver{}, worldOptions{inform: inform})
	newKubelet(t, w.Server).mustRegister(t)
	before, err := os.Lstat(w.register)
	if err != nil {
		t.Fatal(err)
	}
	zone.Store("b")
	await(t, "the kubelet sees a new socket", func() error {
		now, err := os.Lstat(w.register)
		if err == nil && os.SameFile(before, now) {
			return errors.New("it is the same")
		}
		return err
	})
	await(t, "the kubelet registers the driver", func() error {
		node, err := newKubelet(t, w.Server).register(t, "")
		if err == nil && node.GetAccessibleTopology().GetSegments()["zone"] != "b" {
			t.Errorf("the node is in %v", node)
		}
		return err
	})
	wantReady(t, w.Server)
}

func TestAFolderThatIsNoKubeletsIsNotMade(t *testing.T) {
	server := newWorld(t, &plainDriver{}, worldOptions{dir: filepath.Join(kubeletDir(t), "nothing")})
	start(t, server)
	wantUnready(t, server, "--kubelet-dir")
	if _, err := os.Lstat(server.kubeletDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
}

func TestWherePodsDoNotSeeMountsNothingIsServed(t *testing.T) {
	server := newWorld(t, &plainDriver{}, worldOptions{})
	server.checkDir = func(dir string) error { return errors.New("pods don't see " + dir) }
	start(t, server)
	wantUnready(t, server, "pods don't see "+server.kubeletDir)
	if _, err := os.Lstat(server.endpoint); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is served: %v", err)
	}
}

func TestCallsThatAreUnderWayEndFirst(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	driver := &plainDriver{do: func(context.Context) error { close(begun); <-end; return nil }}
	server := newWorld(t, driver, worldOptions{})
	server.patience = eventually
	stop := start(t, server)
	called := make(chan error, 1)
	client := csispec.NewNodeClient(dial(t, server.endpoint))
	await(t, "it answers", func() error {
		_, err := client.NodeGetCapabilities(t.Context(), &csispec.NodeGetCapabilitiesRequest{})
		return err
	})
	go func() {
		_, err := client.NodeStageVolume(t.Context(), stageRequest(nil))
		called <- err
	}()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	await(t, "no new call is accepted", func() error {
		if _, err := os.Lstat(server.endpoint); err == nil {
			return errors.New("the socket is there")
		}
		return nil
	})
	close(end)
	wantCode(t, <-called, codes.OK, "")
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestCallsThatHangAreNotWaitedForForEver(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	driver := &plainDriver{do: func(context.Context) error { <-end; return nil }}
	w := startWorld(t, driver, worldOptions{})
	called := make(chan error, 1)
	go func() {
		_, err := w.node.NodeStageVolume(t.Context(), stageRequest(nil))
		called <- err
	}()
	await(t, "the call is under way", func() error {
		if driver.count() == 0 {
			return errors.New("it isn't")
		}
		return nil
	})
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	wantCode(t, <-called, codes.Unavailable, "")
	if held, err := claim(filepath.Dir(w.endpoint)); err == nil {
		held.Close()
		t.Error("another agent can begin while the driver is at work")
	}
}
