package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// shared is the API server of all tests, once one has needed it.
var shared *apiserver.Server

// serverForTest is the API server, and a kubeconfig of a node's user.
type serverForTest struct {
	*apiserver.Server
	client     kubernetes.Interface
	kubeconfig string
}

// startServer starts the API server, unless it runs, and removes what a test made in it.
func startServer(t *testing.T) *serverForTest {
	t.Helper()
	if shared == nil {
		var err error
		if shared, err = apiserver.Start(apiserver.Options{Rights: true}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { removeObjects(t, shared) })
	return &serverForTest{
		Server: shared, client: kubernetes.NewForConfigOrDie(shared.Config),
		kubeconfig: kubeconfigOf(t, shared, "system:node:n1", "system:nodes"),
	}
}

// removeObjects removes what tests make, and what holds it: nothing else here would.
func removeObjects(t *testing.T, server *apiserver.Server) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	admin := clientOf(t, server.Config)
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.SecretList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &corev1.NodeList{},
		&storagev1.VolumeAttachmentList{}, &storagev1.CSINodeList{},
		&stowagev1alpha1.StorageBackendList{}, &stowagev1alpha1.NodeVolumeList{}, &stowagev1alpha1.NodeDiskList{},
	} {
		if err := admin.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			object := item.(client.Object)
			before := object.DeepCopyObject().(client.Object)
			object.SetFinalizers(nil)
			err := errors.Join(client.IgnoreNotFound(admin.Patch(ctx, object, client.MergeFrom(before))),
				client.IgnoreNotFound(admin.Delete(ctx, object, client.GracePeriodSeconds(0))))
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// clientOf is a client that knows Stowage's objects, too.
func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme, err := program.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return api
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
