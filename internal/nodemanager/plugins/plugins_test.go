package plugins_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket/sockettest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/plugins"
)

// handler has the drivers that are registered, and what happened.
type handler struct {
	mu         sync.Mutex
	registered map[string]string
	events     []string
	fails      int
}

func (h *handler) Register(_ context.Context, plugin plugins.Plugin) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails > 0 {
		h.fails--
		return errors.New("the node doesn't know the driver")
	}
	h.registered[plugin.Name] = plugin.Endpoint
	h.events = append(h.events, "+"+plugin.Name)
	return nil
}

func (h *handler) Deregister(_ context.Context, plugin plugins.Plugin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.registered, plugin.Name)
	h.events = append(h.events, "-"+plugin.Name)
}

func (h *handler) has(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, has := h.registered[name]
	return has
}

// endpoint is the socket of a driver; "" if it isn't registered.
func (h *handler) endpoint(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registered[name]
}

// failOnce has the next registration fail.
func (h *handler) failOnce() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fails = 1
}

func (h *handler) happened() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.events, " ")
}

// start follows a folder until the test ends, or stop is called.
func start(t *testing.T) (folder string, found *handler, stop func()) {
	t.Helper()
	folder = filepath.Join(sockettest.Folder(t), "plugins_registry")
	found = &handler{registered: map[string]string{}}
	registry := plugins.New(plugins.Options{Folder: folder, IsReserved: drivers.IsOwn, Handler: found})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- registry.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	nodetest.Eventually(t, "the folder exists", func() bool {
		_, err := os.Stat(folder)
		return err == nil
	})
	return folder, found, stop
}

func TestADriverIsRegisteredUntilItsSocketIsGone(t *testing.T) {
	folder, found, _ := start(t)
	registrar := sockettest.NewRegistrar("disk.example.com", "/plugins/disk/csi.sock")

	stop := registrar.Serve(t, filepath.Join(folder, "disk-reg.sock"))

	nodetest.Eventually(t, "it is registered", func() bool { return found.has("disk.example.com") })
	if endpoint := found.endpoint("disk.example.com"); endpoint != "/plugins/disk/csi.sock" {
		t.Errorf("its socket is %s", endpoint)
	}
	if got := <-registrar.Reported; !got.GetPluginRegistered() || got.GetError() != "" {
		t.Errorf("it got %v", got)
	}
	stop()
	nodetest.Eventually(t, "it is deregistered", func() bool { return !found.has("disk.example.com") })
}

func TestADriverThatRestartsIsDeregisteredBeforeItRegistersAgain(t *testing.T) {
	folder, found, _ := start(t)
	path := filepath.Join(folder, "disk-reg.sock")
	sockettest.NewRegistrar("disk.example.com", "/a.sock").Serve(t, path)
	nodetest.Eventually(t, "it is registered", func() bool { return found.has("disk.example.com") })

	sockettest.NewRegistrar("disk.example.com", "/b.sock").Serve(t, path)

	nodetest.Eventually(t, "it is registered again", func() bool { return found.happened() == "+disk.example.com -disk.example.com +disk.example.com" })
	if endpoint := found.endpoint("disk.example.com"); endpoint != "/b.sock" {
		t.Errorf("its socket is %s", endpoint)
	}
}

func TestAFailedRegistrationIsReportedAndRepeated(t *testing.T) {
	folder, found, _ := start(t)
	found.failOnce()
	registrar := sockettest.NewRegistrar("disk.example.com", "/a.sock")
	registrar.Serve(t, filepath.Join(folder, "disk-reg.sock"))

	if got := <-registrar.Reported; got.GetPluginRegistered() || !strings.Contains(got.GetError(), "doesn't know the driver") {
		t.Errorf("it got %v", got)
	}
	if got := <-registrar.Reported; !got.GetPluginRegistered() {
		t.Errorf("it got %v", got)
	}
}

func TestWhatNoDriverMayBeIsRefused(t *testing.T) {
	tests := map[string]struct {
		change func(*registration.PluginInfo)
		says   string
	}{
		"of another type":   {func(info *registration.PluginInfo) { info.Type = registration.DevicePlugin }, "type"},
		"the agent's own":   {func(info *registration.PluginInfo) { info.Name = "local.stowage.dev" }, "served by this agent itself"},
		"a path":            {func(info *registration.PluginInfo) { info.Name = "../etc" }, "no name of a CSI driver"},
		"nothing":           {func(info *registration.PluginInfo) { info.Name = "" }, "no name of a CSI driver"},
		"a long name":       {func(info *registration.PluginInfo) { info.Name = strings.Repeat("a", 64) }, "no name of a CSI driver"},
		"a folder's name":   {func(info *registration.PluginInfo) { info.Name = "volumeDevices" }, "no name of a CSI driver"},
		"without a version": {func(info *registration.PluginInfo) { info.SupportedVersions = nil }, "no version 1.x"},
		"of a later CSI":    {func(info *registration.PluginInfo) { info.SupportedVersions = []string{"2.0.0"} }, "no version 1.x"},
		"of an earlier CSI": {func(info *registration.PluginInfo) { info.SupportedVersions = []string{"0.3.0"} }, "no version 1.x"},
		"at no path":        {func(info *registration.PluginInfo) { info.Endpoint = "unix:csi.sock" }, "absolute path"},
	}
	folder, found, _ := start(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			registrar := sockettest.NewRegistrar("disk.example.com", "/a.sock")
			test.change(registrar.Info)
			registrar.Serve(t, filepath.Join(folder, "refused.sock"))

			if got := <-registrar.Reported; got.GetPluginRegistered() || !strings.Contains(got.GetError(), test.says) {
				t.Errorf("it got %v", got)
			}
			if happened := found.happened(); happened != "" {
				t.Errorf("it was used: %s", happened)
			}
		})
	}
}

func TestTwoSocketsCantRegisterTheSameDriver(t *testing.T) {
	folder, found, _ := start(t)
	sockettest.NewRegistrar("disk.example.com", "/a.sock").Serve(t, filepath.Join(folder, "a.sock"))
	nodetest.Eventually(t, "it is registered", func() bool { return found.has("disk.example.com") })
	second := sockettest.NewRegistrar("disk.example.com", "/b.sock")
	stop := second.Serve(t, filepath.Join(folder, "b.sock"))

	if got := <-second.Reported; got.GetPluginRegistered() || !strings.Contains(got.GetError(), "another socket") {
		t.Errorf("the second got %v", got)
	}
	stop()
	if endpoint := found.endpoint("disk.example.com"); endpoint != "/a.sock" {
		t.Errorf("its socket is %s", endpoint)
	}
}

func TestASocketThatHangsHoldsUpNoOther(t *testing.T) {
	folder, found, _ := start(t)
	for _, name := range []string{"a.sock", "b.sock"} {
		hangs := sockettest.NewRegistrar("hangs.example.com", "/a.sock")
		hangs.Hangs = true
		hangs.Serve(t, filepath.Join(folder, name))
	}

	sockettest.NewRegistrar("disk.example.com", "/a.sock").Serve(t, filepath.Join(folder, "z.sock"))

	nodetest.Eventually(t, "the other is registered", func() bool { return found.has("disk.example.com") })
}

func TestOnlySocketsAreFollowedAlsoInFolders(t *testing.T) {
	folder, found, _ := start(t)
	inner := filepath.Join(folder, "inner")
	for _, path := range []string{inner, filepath.Join(folder, ".hidden")} {
		if err := os.Mkdir(path, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sockettest.NewRegistrar("hidden.example.com", "/a.sock").Serve(t, filepath.Join(folder, ".hidden", "a.sock"))
	sockettest.NewRegistrar("dotted.example.com", "/a.sock").Serve(t, filepath.Join(folder, ".a.sock"))
	sockettest.NewRegistrar("disk.example.com", "/a.sock").Serve(t, filepath.Join(inner, "a.sock"))

	nodetest.Eventually(t, "that in a folder is registered", func() bool { return found.has("disk.example.com") })
	if happened := found.happened(); happened != "+disk.example.com" {
		t.Errorf("it happened that %s", happened)
	}
}

func TestTheEndOfTheAgentDeregistersNothing(t *testing.T) {
	folder, found, stop := start(t)
	sockettest.NewRegistrar("disk.example.com", "/a.sock").Serve(t, filepath.Join(folder, "a.sock"))
	nodetest.Eventually(t, "it is registered", func() bool { return found.has("disk.example.com") })

	stop()

	if happened := found.happened(); !slices.Equal(strings.Fields(happened), []string{"+disk.example.com"}) {
		t.Errorf("it happened that %s", happened)
	}
}
