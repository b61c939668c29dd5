package csi_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	localdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/ownership"
)

const (
	mebibyte   = 1 << 20
	imageBytes = 16 * mebibyte
)

var systems = filesystem.NewFileSystems(utilexec.New())

func TestMain(m *testing.M) { mounttest.Main(m) }

// node is a node with one image, and the agent's folders.
type node struct {
	dir, path string
	mounter   mounting.Mounter
	systems   filesystem.FileSystems
	plugin    csi.Plugin
	devices   csi.DevicePlugin
}

// newNode makes an image, with a file system of a type unless that is empty.
func newNode(t *testing.T, fsType string, bytes int64) *node {
	t.Helper()
	mounttest.NeedsRoot(t)
	if fsType != "" {
		if _, err := exec.LookPath("mkfs." + fsType); err != nil {
			t.Skipf("NOT RUN: mkfs.%s is missing: install e2fsprogs and xfsprogs", fsType)
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &node{dir: dir, path: filepath.Join(dir, "base", "fast", "pvc-1"), mounter: mount.Kernel{}, systems: systems}
	n.makeImage(t, fsType, bytes)
	n.restart(t)
	t.Cleanup(func() { n.clean(t) })
	return n
}

func (n *node) image() string { return filepath.Join(n.path, "image") }

func (n *node) makeImage(t *testing.T, fsType string, bytes int64) {
	t.Helper()
	if err := os.MkdirAll(n.path, 0o700); err != nil {
		t.Fatal(err)
	}
	n.resize(t, bytes)
	if fsType != "" {
		if err := systems.Format(t.Context(), n.image(), fsType, bytes); err != nil {
			t.Fatal(err)
		}
	}
}

// resize gives the image a size, as the agent's other half does.
func (n *node) resize(t *testing.T, bytes int64) {
	t.Helper()
	image, err := os.OpenFile(n.image(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if err := loopdev.Allocate(image, bytes); err != nil {
		t.Fatal(err)
	}
}

// restart makes the volume types again, as an agent that starts does.
func (n *node) restart(t *testing.T) {
	t.Helper()
	n.restartWith(t, localdriver.Volumes{Base: filepath.Join(n.dir, "base")}, ownership.Owner{})
}

// restartWith makes them with a driver and an owner.
func (n *node) restartWith(t *testing.T, driver localdriver.Volumes, owner ownership.Owner) {
	t.Helper()
	local, err := localdriver.New(n.mounter, n.systems, driver, filepath.Join(n.dir, "staged"))
	if err != nil {
		t.Fatal(err)
	}
	caller, err := csi.NewCaller(csi.CallerOptions{
		Mounter: n.mounter, Root: n.dir, Drivers: []drivers.Driver{local.WithOwner(owner)}, Owner: owner,
	})
	if err != nil {
		t.Fatal(err)
	}
	n.plugin, n.devices = csi.New(caller), csi.NewDevices(caller)
}

// staged is where the volume is staged.
func (n *node) staged() string {
	sum := sha256.Sum256([]byte("pvc-1"))
	return filepath.Join(n.dir, "plugins", "kubernetes.io", "csi", stowagev1alpha1.LocalDriver, hex.EncodeToString(sum[:]), "globalmount")
}

// spec is the volume, as a pod asks for it.
func (n *node) spec(changes ...func(*volumes.Spec)) volumes.Spec {
	volume := &corev1.PersistentVolume{}
	volume.Name = "pv"
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.LocalDriver, VolumeHandle: "pvc-1",
		VolumeAttributes: map[string]string{"path": n.path, "layout": "Image"},
	}
	spec := volumes.Spec{PersistentVolume: volume}
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

func reading(spec *volumes.Spec) { spec.Access = mount.ReadOnly }

func asDevice(spec *volumes.Spec) {
	spec.PersistentVolume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
}

func mountedWith(options ...string) func(*volumes.Spec) {
	return func(spec *volumes.Spec) { spec.PersistentVolume.Spec.MountOptions = options }
}

// at returns the volume's directory in a pod's, or the file that is its device.
func (n *node) at(t *testing.T, pod string) string {
	t.Helper()
	parent := filepath.Join(n.dir, "pods", pod)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(parent, "pv")
}

// publish publishes the volume to a pod and returns where the pod sees it.
func (n *node) publish(t *testing.T, pod string, spec volumes.Spec) string {
	t.Helper()
	plugin := n.pluginFor(spec)
	if err := plugin.Publish(t.Context(), spec, n.at(t, pod)); err != nil {
		t.Fatal(err)
	}
	return plugin.Path(n.at(t, pod))
}

func (n *node) unpublish(t *testing.T, pod string, spec volumes.Spec) {
	t.Helper()
	if err := n.pluginFor(spec).Unpublish(t.Context(), n.at(t, pod)); err != nil {
		t.Fatal(err)
	}
}

func (n *node) pluginFor(spec volumes.Spec) volumes.Grower {
	if spec.IsBlock() {
		return n.devices
	}
	return n.plugin
}

func (n *node) table(t *testing.T) mount.Table {
	t.Helper()
	table, err := mount.Kernel{}.Table()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// loop is the loop device of the image, "" if it has none.
func (n *node) loop(t *testing.T) string {
	t.Helper()
	image, err := os.Open(n.image())
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	found, err := loopdev.Find(image)
	if err != nil {
		t.Fatal(err)
	}
	if found == nil {
		return ""
	}
	defer found.Close()
	return found.Path()
}

// mustBeClean fails if anything is left of what was published.
func (n *node) mustBeClean(t *testing.T) {
	t.Helper()
	if left := n.table(t).Below(n.dir); len(left) > 0 {
		t.Errorf("still mounted: %+v", left)
	}
	if loop := n.loop(t); loop != "" {
		t.Errorf("still attached: %s", loop)
	}
	for _, pattern := range []string{"images", "staged/*", "plugins/kubernetes.io/csi/*/*", "pods/*/*"} {
		if left, _ := filepath.Glob(filepath.Join(n.dir, pattern)); len(left) > 0 {
			t.Errorf("still there: %v", left)
		}
	}
}

// clean removes what a failed test left.
func (n *node) clean(t *testing.T) {
	if err := mount.UnmountBelow(mount.Kernel{}, n.dir); err != nil {
		t.Error(err)
	}
	image, err := os.Open(n.image())
	if err != nil {
		return
	}
	defer image.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if loop, err := loopdev.Find(image); err != nil || loop != nil && loop.Detach(ctx) != nil {
		t.Errorf("the image is still attached (%v)", err)
	}
}
