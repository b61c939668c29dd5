package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestTheAgentMayReadTheBackendThatAPodNames(t *testing.T) {
	server := startServer(t)
	share := LocalBackend("share")
	if err := clientOf(t, server.Config).Create(t.Context(), share); err != nil {
		t.Fatal(err)
	}
	read, err := backendsIn(clientOf(t, server.As(apiserver.Agent("n1"))))(t.Context(), share.Name)
	if err != nil || read.UID != share.UID {
		t.Errorf("it read %v: %v", read, err)
	}
}

func TestTheAgentIsReadyWhenTheKubeletHasAllItsDrivers(t *testing.T) {
	mounttest.NeedsRoot(t)
	server, probes := startServer(t), freeAddress(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "z1"}}}
	if _, err := server.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "agent") //nolint:usetesting // t.TempDir has the test's name in it, and is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	identity := apiserver.Agent(node.Name)
	// In a process of its own: one has one agent.
	agent := &process{arguments: []string{
		"--kubeconfig=" + kubeconfigOf(t, server.Server, identity.UserName, identity.Groups...), "--metrics-bind-address=0", "--health-probe-bind-address=" + probes,
		"--node-name=n1", "--kubelet-dir=" + dir, "--root-dir=" + filepath.Join(dir, "agent"), "--local-base=" + dir, "--max-disks=16",
	}}
	agent.start(t)
	t.Cleanup(agent.kill)
	answers := answersAt(probes)
	await(t, "it is alive", answers("/healthz", http.StatusOK))
	await(t, "it isn't ready", answers("/readyz", http.StatusInternalServerError))

	for driver, topology := range map[string]string{
		stowagev1alpha1.NFSDriver: "", stowagev1alpha1.LocalDriver: stowagev1alpha1.TopologyNodeLabel, stowagev1alpha1.GCEDriver: corev1.LabelTopologyZone,
	} {
		await(t, "the kubelet registers "+driver, func() bool { return registers(t, dir, driver, topology) == nil })
	}
	await(t, "it is ready", answers("/readyz", http.StatusOK))
	if err := agent.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := agent.command.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// registers does what a kubelet does that finds a driver's registration.
func registers(t *testing.T, dir, driver, topology string) error {
	t.Helper()
	connect := func(path string) *grpc.ClientConn {
		connection, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	registration := registerapi.NewRegistrationClient(connect(filepath.Join(dir, "plugins_registry", driver+"-reg.sock")))
	info, err := registration.GetInfo(t.Context(), &registerapi.InfoRequest{})
	if err != nil {
		return err
	}
	node, err := csispec.NewNodeClient(connect(info.GetEndpoint())).NodeGetInfo(t.Context(), &csispec.NodeGetInfoRequest{})
	if err != nil {
		return err
	}
	if node.GetNodeId() != "n1" || (node.GetAccessibleTopology().GetSegments()[topology] == "") != (topology == "") {
		return errors.New("it says something else of the node")
	}
	_, err = registration.NotifyRegistrationStatus(t.Context(), &registerapi.RegistrationStatus{PluginRegistered: true})
	return err
}

func TestAFolderWhoseMountsPodsDoNotSeeIsRefused(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := t.TempDir()
	mounttest.Tmpfs(t, dir)
	link := filepath.Join(t.TempDir(), "kubelet")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	set := func(propagation uintptr) {
		t.Helper()
		if err := unix.Mount("", dir, "", propagation, ""); err != nil {
			t.Fatal(err)
		}
	}
	set(unix.MS_PRIVATE)
	t.Setenv(inPod, "")
	if err := checkMountsSeen(dir); err != nil {
		t.Errorf("on the machine: %v", err)
	}
	if err := checkMountsSeen(link); err == nil || !strings.Contains(err.Error(), "--kubelet-dir") {
		t.Errorf("by a symlink: %v", err)
	}
	t.Setenv(inPod, "10.0.0.1")
	if err := checkMountsSeen(dir); !errors.Is(err, mount.ErrNotShared) {
		t.Errorf("in a pod: %v", err)
	}
	set(unix.MS_SHARED)
	if err := checkMountsSeen(dir); err != nil {
		t.Errorf("in a pod, Bidirectional: %v", err)
	}
}
