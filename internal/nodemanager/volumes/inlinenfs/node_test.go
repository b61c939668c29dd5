package inlinenfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	nfsdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/inlinenfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

// Of the share on which the volumes of a test are.
const (
	serverName = "192.0.2.7"
	sharePath  = "/srv/share"
)

// kernel is all that an agent asks servers through.
type kernel interface {
	nfsdriver.Mounter
	inlinenfs.Folders
}

// node is a node with an agent, and a server.
type node struct {
	dir     string
	servers mounttest.Servers
	shares  nfs.Plugin
	driver  inlinenfs.Driver
	plugin  inlinenfs.Plugin
	backend *stowagev1alpha1.StorageBackend
	// asked counts how often a backend was read for a kubelet's call.
	asked int
}

func newNode(t *testing.T) *node {
	t.Helper()
	mounttest.NeedsRoot(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.UnmountBelow(mount.Kernel{}, dir); err != nil {
			t.Error(err)
		}
	})
	n := &node{dir: dir, servers: mounttest.Servers{Root: filepath.Join(dir, "servers")}}
	n.backend = &stowagev1alpha1.StorageBackend{}
	n.backend.Spec.NFS = &stowagev1alpha1.NFSBackend{
		Server: serverName, Path: sharePath, NFSVersion: "4.1", AllowInline: true,
		Access: stowagev1alpha1.NFSAccess{UID: 1000, GID: 2000, Mode: "2775"},
	}
	if err := os.MkdirAll(n.onServer("precious"), 0o755); err != nil {
		t.Fatal(err)
	}
	n.restart(t, n.servers)
	return n
}

// restart starts an agent again, with a kernel of its own.
func (n *node) restart(t *testing.T, kernel kernel) {
	t.Helper()
	servers := nfsdriver.NewShares(kernel)
	var err error
	if n.shares, err = nfs.New(servers, filepath.Join(n.dir, "nfs")); err != nil {
		t.Fatal(err)
	}
	claimed, err := nfsdriver.New(servers, filepath.Join(n.dir, "staged"))
	if err != nil {
		t.Fatal(err)
	}
	n.driver, err = inlinenfs.NewDriver(inlinenfs.Options{
		Claimed: claimed.WithEarlier(filepath.Join(n.dir, "nfs")), Shares: n.shares, Folders: kernel, Backends: n.backends, Folder: filepath.Join(n.dir, "inline"),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.plugin = inlinenfs.New(n.driver)
}

func (n *node) backends(context.Context, string) (*stowagev1alpha1.StorageBackend, error) {
	n.asked++
	if n.backend == nil {
		return nil, errors.New("there is no such StorageBackend")
	}
	return n.backend, nil
}

// onServer is a path on the share, as the server has it.
func (n *node) onServer(parts ...string) string {
	return filepath.Join(append([]string{n.servers.PathOf(serverName, sharePath)}, parts...)...)
}

// folderOf is where on the server a pod's volume is.
func (n *node) folderOf(pod string) string { return n.onServer(".stowage-inline", pod+"-scratch") }

func (n *node) recordOf(pod string) string {
	return filepath.Join(n.dir, "inline", "records", pod+"-scratch.json")
}

// at is the directory of a pod's volume.
func (n *node) at(pod string) string { return filepath.Join(n.dir, "pods", pod) }

// spec is a pod's volume, as it is on a pod that begins now.
func (n *node) spec(pod string) volumes.Spec {
	spec := volumes.Spec{Pod: &corev1.Pod{}, Backend: n.backend}
	spec.Pod.UID = types.UID(pod)
	spec.Volume.Name, spec.Volume.CSI = "scratch", &corev1.CSIVolumeSource{Driver: stowagev1alpha1.NFSDriver}
	return spec
}

func (n *node) publish(ctx context.Context, pod string) error {
	if err := os.MkdirAll(filepath.Dir(n.at(pod)), 0o750); err != nil {
		return err
	}
	return n.plugin.Publish(ctx, n.spec(pod), n.at(pod))
}

func (n *node) mustPublish(t *testing.T, pod string) {
	t.Helper()
	if err := n.publish(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	table, err := mount.Kernel{}.Table()
	there, err2 := n.plugin.IsPublished(table, n.spec(pod), n.at(pod))
	if err := errors.Join(err, err2); !there || err != nil {
		t.Fatalf("it isn't there (%v)", err)
	}
}

func (n *node) mustUnpublish(t *testing.T, pod string) {
	t.Helper()
	if err := n.plugin.Unpublish(t.Context(), n.at(pod)); err != nil {
		t.Fatal(err)
	}
}

// write has a pod write a file, and says what the server has then.
func (n *node) write(t *testing.T, pod, content string) (onServer string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.plugin.Path(n.at(pod)), "file"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return n.reads(t, pod)
}

func (n *node) reads(t *testing.T, pod string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(n.folderOf(pod), "file"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// mustBeClean fails if anything is left of any pod, on the node or on the server, or if
// more than that is gone.
func (n *node) mustBeClean(t *testing.T) {
	t.Helper()
	table, err := mount.Kernel{}.Table()
	if points := table.Below(n.dir); err != nil || len(points) > 0 {
		t.Errorf("mounted: %+v (%v)", points, err)
	}
	for _, dir := range []string{
		"inline/records", "inline/work", "nfs", "staged", "pods", strings.TrimPrefix(n.onServer(".stowage-inline", ".deleting"), n.dir),
	} {
		if names := namesIn(t, filepath.Join(n.dir, dir)); len(names) > 0 {
			t.Errorf("in %s is left: %v", dir, names)
		}
	}
	for _, name := range namesIn(t, n.onServer(".stowage-inline")) {
		if name != ".deleting" {
			t.Errorf("on the server is left: %s", name)
		}
	}
	if _, err := os.Lstat(n.onServer("precious")); err != nil {
		t.Error(err)
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
