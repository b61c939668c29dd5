package csicontroller_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"google.golang.org/grpc/codes"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/csicontroller"
)

func TestItSaysWhatItsStorageCan(t *testing.T) {
	w := serve(t)
	info, err := w.GetPluginInfo(t.Context(), &csispec.GetPluginInfoRequest{})
	if err != nil || info.GetName() != stowagev1alpha1.GCEDriver {
		t.Errorf("it is called %s: %v", info.GetName(), err)
	}
	response, err := w.ControllerGetCapabilities(t.Context(), &csispec.ControllerGetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var claimed []csispec.ControllerServiceCapability_RPC_Type
	for _, one := range response.GetCapabilities() {
		claimed = append(claimed, one.GetRpc().GetType())
	}
	for _, wanted := range []csispec.ControllerServiceCapability_RPC_Type{
		csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csispec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
	} {
		if !slices.Contains(claimed, wanted) {
			t.Errorf("it claims %v, without %s", claimed, wanted)
		}
	}
	if slices.Contains(claimed, csispec.ControllerServiceCapability_RPC_MODIFY_VOLUME) {
		t.Error("it claims what its storage can't")
	}
}

func TestItIsReadyWhileThereIsAStorageBackend(t *testing.T) {
	w := serve(t)
	ready := func() bool {
		response, err := w.Probe(t.Context(), &csispec.ProbeRequest{})
		mustBe(t, err, codes.OK)
		return response.GetReady().GetValue()
	}
	if !ready() {
		t.Error("it isn't ready")
	}
	if err := w.cluster.Delete(t.Context(), disks()); err != nil {
		t.Fatal(err)
	}
	if ready() {
		t.Error("it is ready without a StorageBackend")
	}
	_, err := w.CreateVolume(t.Context(), asking("a", mebibyte))
	mustBe(t, err, codes.Unavailable)
}

func TestOnlyItsOwnUserCanCall(t *testing.T) {
	socket := filepath.Join(folder(t), "csi.sock")
	service := csicontroller.New(csicontroller.Options{Name: "disks"})
	start(t, service, socket)
	for {
		there, err := os.Stat(socket)
		if err == nil && there.Mode().Perm() == 0o600 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("the socket never had its mode")
		}
	}
}

func TestNothingIsReplacedThatIsUsed(t *testing.T) {
	dir := folder(t)
	file, used := filepath.Join(dir, "file"), filepath.Join(dir, "used.sock")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", used)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for path, why := range map[string]string{file: "isn't a socket", used: "another process listens"} {
		ctx, stop := context.WithCancel(t.Context())
		said := ""
		log := funcr.New(func(_, line string) {
			said = line
			stop()
		}, funcr.Options{})
		server, err := csicontroller.NewServer(csicontroller.New(csicontroller.Options{Name: "disks"}), path, log)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := os.Stat(path)
		if err := server.Start(ctx); err != nil || !strings.Contains(said, why) {
			t.Errorf("the log says %s: %v", said, err)
		}
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s is another one: %v", path, err)
		}
	}
}

func TestASocketThatAProcessLeftIsReplaced(t *testing.T) {
	path := filepath.Join(folder(t), "csi.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	start(t, csicontroller.New(csicontroller.Options{Name: "disks"}), path)
	for {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if err == nil {
			connection.Close()
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestASocketThatCanNotBeIsRefusedAtTheStart(t *testing.T) {
	for path, says := range map[string]string{"relative": "absolute", "/" + strings.Repeat("a", 200): "bytes"} {
		if _, err := csicontroller.NewServer(csicontroller.New(csicontroller.Options{Name: "disks"}), path, logr.Discard()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20s: %v", path, err)
		}
	}
}
