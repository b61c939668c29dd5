package csi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/csi/calls"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	driverName = "fake.stowage.dev"
	inlineID   = "csi-inline"
	// eventually bounds what a test waits for.
	eventually = 30 * time.Second
)

// plainDriver is a driver without further abilities. It records its calls, and
// does what the test says.
type plainDriver struct {
	mu    sync.Mutex
	calls []string
	spec  volumes.Spec
	// do is done in each call but Check.
	do func(ctx context.Context) error
	// ails is what Check says.
	ails error
}

func (d *plainDriver) record(ctx context.Context, call string, spec volumes.Spec) error {
	d.mu.Lock()
	d.calls, d.spec = append(d.calls, call), spec
	do := d.do
	d.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(ctx)
}

func (d *plainDriver) Name() string { return driverName }

func (d *plainDriver) Stage(ctx context.Context, spec volumes.Spec, staging string) error {
	return d.record(ctx, "stage "+staging, spec)
}

func (d *plainDriver) Unstage(ctx context.Context, handle, staging string) error {
	return d.record(ctx, "unstage "+handle+" "+staging, volumes.Spec{})
}

func (d *plainDriver) Publish(ctx context.Context, spec volumes.Spec, staging, target string) error {
	return d.record(ctx, "publish "+staging+" "+target, spec)
}

func (d *plainDriver) Unpublish(ctx context.Context, handle, target string) error {
	return d.record(ctx, "unpublish "+handle+" "+target, volumes.Spec{})
}

func (d *plainDriver) Check(_ context.Context, handle, path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "check "+handle+" "+path)
	return d.ails
}

// ableDriver has all abilities.
type ableDriver struct {
	plainDriver
	size int64
}

func (d *ableDriver) Grow(ctx context.Context, handle, path string) (int64, error) {
	return d.size, d.record(ctx, "grow "+handle+" "+path, volumes.Spec{})
}

func (d *ableDriver) PublishInline(ctx context.Context, spec volumes.Spec, handle, target string) error {
	return d.record(ctx, "publish inline "+handle+" "+target, spec)
}

func (d *ableDriver) UnpublishInline(ctx context.Context, handle, target string) error {
	return d.record(ctx, "unpublish inline "+handle+" "+target, volumes.Spec{})
}

func (d *ableDriver) IsInline(handle string) bool { return handle == inlineID }

var (
	_ drivers.Grower  = &ableDriver{}
	_ drivers.Inliner = &ableDriver{}
)

// world is a server that runs, and a client of it.
type world struct {
	*Server
	node     csispec.NodeClient
	identity csispec.IdentityClient
	dir      string
	stop     func() error
}

// worldOptions are what a test's server is made of.
type worldOptions struct {
	dir    string
	inform Informer
	log    logr.Logger
	counts *calls.Calls
}

func informed(context.Context) (Info, error) { return Info{NodeID: "n1"}, nil }

// kubeletDir is a folder whose path is short enough for sockets.
func kubeletDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") //nolint:usetesting // t.TempDir has the test's name in it, and is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newWorld makes a server of a driver, which isn't started.
func newWorld(t *testing.T, driver drivers.Driver, options worldOptions) *Server {
	t.Helper()
	if options.dir == "" {
		options.dir = kubeletDir(t)
	}
	if options.inform == nil {
		options.inform = informed
	}
	server := NewServer(driver, options.inform, ServerOptions{KubeletDir: options.dir, Version: "v1", Log: options.log, Calls: options.counts})
	server.node.within = "/"
	server.interval, server.informEvery, server.patience = 10*time.Millisecond, 10*time.Millisecond, time.Second
	return server
}

// startWorld starts a server, and waits until it answers.
func startWorld(t *testing.T, driver drivers.Driver, options worldOptions) *world {
	t.Helper()
	server := newWorld(t, driver, options)
	connection := dial(t, server.endpoint)
	w := &world{
		Server: server, node: csispec.NewNodeClient(connection), identity: csispec.NewIdentityClient(connection),
		dir: server.kubeletDir, stop: start(t, server),
	}
	await(t, "it answers", func() error {
		_, err := w.identity.Probe(t.Context(), &csispec.ProbeRequest{}, grpc.WaitForReady(true))
		return err
	})
	return w
}

// start starts a server. What it returns stops it, once.
func start(t *testing.T, server *Server) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(eventually):
			return errors.New("it doesn't end")
		}
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	return stop
}

func dial(t *testing.T, path string) *grpc.ClientConn {
	t.Helper()
	// Without a second's pause where the server isn't there yet.
	again := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond}}
	connection, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(again))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// await waits until a check succeeds.
func await(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline, ticker := time.After(eventually), time.NewTicker(5*time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: %v", what, err)
		case <-ticker.C:
		}
	}
}

// wantCode checks how a call ended.
func wantCode(t *testing.T, err error, want codes.Code, says string) {
	t.Helper()
	if status.Code(err) != want || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("got %v, want %s with %q", err, want, says)
	}
}

// wantCalls checks what a driver was asked for.
func (d *plainDriver) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if fmt.Sprint(d.calls) != fmt.Sprint(want) {
		t.Errorf("the driver was asked %q, want %q", d.calls, want)
	}
}

func (d *plainDriver) asked() volumes.Spec {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.spec
}

func (d *plainDriver) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.calls)
}

// logbook is a logger that keeps all that is logged.
func logbook() (logr.Logger, func() string) {
	mu, lines := sync.Mutex{}, strings.Builder{}
	log := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines.WriteString(prefix + " " + args + "\n")
	}, funcr.Options{Verbosity: 10})
	return log, func() string {
		mu.Lock()
		defer mu.Unlock()
		return lines.String()
	}
}

func mounted(mode csispec.VolumeCapability_AccessMode_Mode) *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{FsType: "ext4", MountFlags: []string{"noatime"}}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: mode},
	}
}

func asDevice(mode csispec.VolumeCapability_AccessMode_Mode) *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessType: &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: mode},
	}
}

const multiWriter = csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER

// stale leaves a socket without a listener.
func stale(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
}
