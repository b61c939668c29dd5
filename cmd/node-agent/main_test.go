package main

import (
	"cmp"
	"context"
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
	"k8s.io/client-go/rest"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

func TestWrongFlagsAreNamed(t *testing.T) {
	tests := map[string]struct {
		options options
		flag    string
	}{
		"all is well":                     {options{nodeName: "n1", rootDir: "/a/", localBase: "/b"}, ""},
		"no node":                         {options{rootDir: "/a", localBase: "/b"}, "--node-name"},
		"a relative root":                 {options{nodeName: "n1", rootDir: "a", localBase: "/b"}, "--root-dir"},
		"the whole machine":               {options{nodeName: "n1", rootDir: "/a", localBase: "/x/.."}, "--local-base"},
		"no base":                         {options{nodeName: "n1", rootDir: "/a"}, "--local-base"},
		"a base in the root":              {options{nodeName: "n1", rootDir: "/a", localBase: "/a/pods"}, "--local-base"},
		"a base that the root":            {options{nodeName: "n1", rootDir: "/a", localBase: "/a"}, "--local-base"},
		"fewer disks than none":           {options{nodeName: "n1", rootDir: "/a", localBase: "/b", maxDisks: -1}, "--max-disks"},
		"disks in a relative folder":      {options{nodeName: "n1", rootDir: "/a", localBase: "/b", deviceDir: "dev"}, "--device-dir"},
		"a folder to recycle in":          {options{nodeName: "n1", rootDir: "/a", localBase: "/b", recycleRoot: "/c/"}, ""},
		"the whole machine to recycle in": {options{nodeName: "n1", rootDir: "/a", localBase: "/b", recycleRoot: "/c/.."}, "--recycle-root"},
		"a kubelet's folder":              {options{nodeName: "n1", rootDir: "/a", localBase: "/b", kubeletDir: "/k/"}, ""},
		"a relative kubelet's folder":     {options{nodeName: "n1", rootDir: "/a", localBase: "/b", kubeletDir: "k"}, "--kubelet-dir"},
		"a kubelet, and no kubelet":       {options{nodeName: "n1", rootDir: "/a", localBase: "/b", kubeletDir: "/k", followPods: true}, "--follow-pods"},
		"recycling at the kubelet's":      {options{nodeName: "n1", rootDir: "/a", localBase: "/b", kubeletDir: "/k", recycleRoot: "/k/pods"}, "--recycle-root"},
		"recycling in the base":           {options{nodeName: "n1", rootDir: "/a", localBase: "/b", recycleRoot: "/b/c"}, "--recycle-root"},
		"recycling around the root":       {options{nodeName: "n1", rootDir: "/c/a", localBase: "/b", recycleRoot: "/c"}, "--recycle-root"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.options.deviceDir = cmp.Or(test.options.deviceDir, "/dev/disk/by-id")
			err := test.options.check()
			if test.flag == "" && err != nil || test.flag != "" && (err == nil || !strings.Contains(err.Error(), test.flag)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// serverForTest is an API server, and a kubeconfig of a node's user.
type serverForTest struct {
	config     *rest.Config
	client     kubernetes.Interface
	kubeconfig string
}

func startServer(t *testing.T) *serverForTest {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	// system:masters stands for the rights to NodeVolumes, which come from RBAC.
	kubeconfig, err := server.Kubeconfig("system:node:n1", "system:nodes", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return &serverForTest{config: server.Config, client: kubernetes.NewForConfigOrDie(server.Config), kubeconfig: file}
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
