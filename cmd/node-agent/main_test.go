package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// serverForTest is an API server, and a kubeconfig of a node's user.
type serverForTest struct {
	*apiserver.Server
	client     kubernetes.Interface
	kubeconfig string
}

func startServer(t *testing.T) *serverForTest {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{Rights: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &serverForTest{
		Server: server, client: kubernetes.NewForConfigOrDie(server.Config),
		kubeconfig: kubeconfigOf(t, server, "system:node:n1", "system:nodes"),
	}
}

// kubeconfigOf writes a kubeconfig of a user, and returns its path.
func kubeconfigOf(t *testing.T, server *apiserver.Server, user string, groups ...string) string {
	t.Helper()
	kubeconfig, err := server.Kubeconfig(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func createNode(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestTheAgentIsAliveAtOnceAndReadyWhenItFollowsPods(t *testing.T) {
	mounttest.NeedsRoot(t)
	server, dir, probes := startServer(t), t.TempDir(), freeAddress(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, &options{
			Options:  program.Options{Kubeconfig: server.kubeconfig, MetricsAddress: "0", ProbeAddress: probes},
			nodeName: "n1", followPods: true, rootDir: filepath.Join(dir, "agent"), localBase: dir,
		})
	}()
	answers := answersAt(probes)
	await(t, "it is alive", answers("/healthz", http.StatusOK))
	await(t, "it isn't ready", answers("/readyz", http.StatusInternalServerError))
	createNode(t, server.client)
	await(t, "it is ready", answers("/readyz", http.StatusOK))
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it doesn't end")
	}
}

// answersAt makes checks of whether a path of an agent's probes answers with a status.
func answersAt(probes string) func(path string, status int) func() bool {
	return func(path string, status int) func() bool {
		return func() bool {
			response, err := http.Get("http://" + probes + path)
			if err != nil {
				return false
			}
			response.Body.Close()
			return response.StatusCode == status
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
