package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/apiserver"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

func TestWrongFlagsAreNamed(t *testing.T) {
	tests := map[string]struct {
		options options
		flag    string
	}{
		"all is well":          {options{nodeName: "n1", rootDir: "/a/", localBase: "/b"}, ""},
		"no node":              {options{rootDir: "/a", localBase: "/b"}, "--node-name"},
		"a relative root":      {options{nodeName: "n1", rootDir: "a", localBase: "/b"}, "--root-dir"},
		"the whole machine":    {options{nodeName: "n1", rootDir: "/a", localBase: "/x/.."}, "--local-base"},
		"no base":              {options{nodeName: "n1", rootDir: "/a"}, "--local-base"},
		"a base within itself": {options{nodeName: "n1", rootDir: "/a", localBase: "/a/pods"}, "--local-base"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.options.check()
			if test.flag == "" && err != nil || test.flag != "" && (err == nil || !strings.Contains(err.Error(), test.flag)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// agent is an agent that runs against a real API server as its node's user.
type agent struct {
	client kubernetes.Interface
	probes string
	ended  chan error
	stop   context.CancelFunc
}

func startAgent(t *testing.T) *agent {
	t.Helper()
	mounttest.NeedsRoot(t)
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	// The node's own rights are enough: those that RBAC adds are for LocalVolumes.
	kubeconfig, err := server.Kubeconfig("system:node:n1", "system:nodes", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	a := &agent{client: kubernetes.NewForConfigOrDie(server.Config), probes: freeAddress(t), ended: make(chan error, 1)}
	options := &options{
		Options:  program.Options{Kubeconfig: file, MetricsAddress: "0", ProbeAddress: a.probes},
		nodeName: "n1", followPods: true, rootDir: filepath.Join(dir, "agent"), localBase: dir,
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	t.Cleanup(stop)
	go func() { a.ended <- run(ctx, options) }()
	return a
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

// awaitProbe waits until a probe answers with a status.
func (a *agent) awaitProbe(t *testing.T, path string, want int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	last := ""
	for {
		response, err := http.Get("http://" + a.probes + path)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == want {
				return
			}
			last = response.Status
		}
		select {
		case <-deadline:
			t.Fatalf("%s answers %s (%v), want %d", path, last, err, want)
		case err := <-a.ended:
			t.Fatalf("the agent ended with %v", err)
		case <-ticker.C:
		}
	}
}

func (a *agent) createNode(t *testing.T, kubelet string) {
	t.Helper()
	nodes := a.client.CoreV1().Nodes()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.NodeInfo.KubeletVersion = kubelet
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(fmt.Errorf("creating the node: %w", err))
	}
}

func TestTheAgentIsAliveAtOnceAndReadyWhenItFollowsPods(t *testing.T) {
	agent := startAgent(t)
	agent.awaitProbe(t, "/healthz", http.StatusOK)
	agent.awaitProbe(t, "/readyz", http.StatusInternalServerError)
	agent.createNode(t, "")
	agent.awaitProbe(t, "/readyz", http.StatusOK)
	agent.stop()
	if err := <-agent.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
