package csi_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	localdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// kubeletNode is a node whose kubelet has local volumes staged and published.
type kubeletNode struct {
	*node
	driver localdriver.Volumes
	local  *localdriver.Driver
}

func newKubeletNode(t *testing.T, fsType string, bytes int64) *kubeletNode {
	t.Helper()
	n := &kubeletNode{node: newNode(t, fsType, bytes)}
	n.driver = localdriver.Volumes{Base: filepath.Join(n.dir, "base")}
	if err := os.MkdirAll(n.staging(), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(n.dir, "pods"), 0o750); err != nil {
		t.Fatal(err)
	}
	n.restart(t)
	return n
}

// restart makes the driver again, as an agent that starts does.
func (n *kubeletNode) restart(t *testing.T) {
	t.Helper()
	var err error
	n.local, err = localdriver.New(n.mounter, n.systems, n.driver, filepath.Join(n.dir, "agent", "csi"))
	if err != nil {
		t.Fatal(err)
	}
}

func (n *kubeletNode) staging() string          { return filepath.Join(n.dir, "plugins", "globalmount") }
func (n *kubeletNode) target(pod string) string { return filepath.Join(n.dir, "pods", pod) }

// spec is the volume as the kubelet's calls carry it.
func (n *kubeletNode) spec(changes ...func(*volumes.Spec)) volumes.Spec {
	return n.node.spec(append([]func(*volumes.Spec){func(spec *volumes.Spec) { spec.PersistentVolume.Name = "pvc-1" }}, changes...)...)
}

func onlyRead(spec *volumes.Spec) {
	spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
}

func (n *kubeletNode) stage(t *testing.T, spec volumes.Spec) {
	t.Helper()
	if err := n.local.Stage(t.Context(), spec, n.staging()); err != nil {
		t.Fatal(err)
	}
}

// show publishes the staged volume to a pod and returns where the pod sees it.
func (n *kubeletNode) show(t *testing.T, pod string, spec volumes.Spec) string {
	t.Helper()
	if err := n.local.Publish(t.Context(), spec, n.staging(), n.target(pod)); err != nil {
		t.Fatal(err)
	}
	return n.target(pod)
}

func (n *kubeletNode) hide(t *testing.T, pod string) {
	t.Helper()
	if err := n.local.Unpublish(t.Context(), "pvc-1", n.target(pod)); err != nil {
		t.Fatal(err)
	}
}

func (n *kubeletNode) unstage(t *testing.T) {
	t.Helper()
	if err := n.local.Unstage(t.Context(), "pvc-1", n.staging()); err != nil {
		t.Fatal(err)
	}
}

// mustBeClean fails if anything is left except the empty staging directory, which is the
// kubelet's.
func (n *kubeletNode) mustBeClean(t *testing.T) {
	t.Helper()
	n.node.mustBeClean(t)
	for _, pattern := range []string{"agent/csi/*", "plugins/globalmount/*", "pods/*"} {
		if left, _ := filepath.Glob(filepath.Join(n.dir, pattern)); len(left) > 0 {
			t.Errorf("still there: %v", left)
		}
	}
	if _, err := os.Lstat(n.staging()); err != nil {
		t.Error(err)
	}
}

// localKinds are the ways in which pods see local volumes.
var localKinds = map[string]func(*volumes.Spec){
	"a directory": asDirectory, "a file system": func(*volumes.Spec) {}, "a device": asDevice,
}

// access returns the access of the mount at a path.
func (n *kubeletNode) access(t *testing.T, path string) mount.Access {
	t.Helper()
	point, mounted := n.table(t).At(path)
	if !mounted {
		t.Fatalf("nothing is mounted at %s", path)
	}
	return point.Access
}
