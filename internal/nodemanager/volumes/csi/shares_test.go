package csi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/ownership"
)

const shareServer = "192.0.2.7"

// shareNode is a node whose pods have volumes of a server.
type shareNode struct {
	*testing.T
	dir     string
	servers *servers
	plugin  csi.Plugin
	devices csi.DevicePlugin
}

// servers hold up unmounts at a path until they are released.
type servers struct {
	mounttest.Servers
	silent   string
	released chan struct{}
}

func (s *servers) Unmount(ctx context.Context, path string) (<-chan struct{}, error) {
	if path == s.silent {
		<-s.released
	}
	return s.Servers.Unmount(ctx, path)
}

func newShareNode(t *testing.T) *shareNode {
	t.Helper()
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	t.Cleanup(func() {
		if err := mount.UnmountBelow(mount.Kernel{}, dir); err != nil {
			t.Error(err)
		}
	})
	n := &shareNode{T: t, dir: dir, servers: &servers{Servers: mounttest.Servers{Root: filepath.Join(dir, "servers")}, released: make(chan struct{})}}
	n.restart()
	return n
}

// restart makes a new volume type, as an agent that starts does.
func (n *shareNode) restart() {
	n.Helper()
	driver, err := nfs.New(nfs.NewShares(n.servers), filepath.Join(n.dir, "staged"))
	n.must(err)
	caller, err := csi.NewCaller(csi.CallerOptions{Mounter: mount.Kernel{}, Root: n.dir, Drivers: []drivers.Driver{driver}, Owner: ownership.Owner{}})
	n.must(err)
	n.plugin, n.devices = csi.New(caller), csi.NewDevices(caller)
}

func (n *shareNode) must(errs ...error) {
	n.Helper()
	if err := errors.Join(errs...); err != nil {
		n.Fatal(err)
	}
}

// spec is a volume of the server, whose directory it makes.
func (n *shareNode) spec(handle string, changes ...func(*volumes.Spec)) volumes.Spec {
	n.Helper()
	n.must(os.MkdirAll(n.servers.PathOf(shareServer, handle), 0o755))
	volume := &corev1.PersistentVolume{}
	volume.Name = "pv"
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.NFSDriver, VolumeHandle: handle, VolumeAttributes: map[string]string{
		stowagev1alpha1.ServerAttribute: shareServer, stowagev1alpha1.PathAttribute: "/" + handle,
	}}
	spec := volumes.Spec{PersistentVolume: volume, Pod: &corev1.Pod{}}
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

func (n *shareNode) at(pod string) string {
	return filepath.Join(n.dir, "pods", pod, "volumes", "kubernetes.io~csi", "pv")
}

func (n *shareNode) publish(pod string, spec volumes.Spec) error {
	return errors.Join(os.MkdirAll(filepath.Dir(n.at(pod)), 0o750), n.plugin.Publish(n.Context(), spec, n.at(pod)))
}

func (n *shareNode) unpublish(pod string) error { return n.plugin.Unpublish(n.Context(), n.at(pod)) }

func (n *shareNode) mounted() []mount.Point { return mounttest.TableOf(n.T).Below(n.dir) }

func (n *shareNode) mustBeClean() {
	n.Helper()
	if points := n.mounted(); len(points) > 0 {
		n.Errorf("mounted: %+v", points)
	}
	for _, pattern := range []string{"staged/*", "plugins/kubernetes.io/csi/*/*", "pods/*/volumes/*/*"} {
		if left, _ := filepath.Glob(filepath.Join(n.dir, pattern)); len(left) > 0 {
			n.Errorf("still there: %v", left)
		}
	}
}

func TestAShareIsNoDevice(t *testing.T) {
	n := newShareNode(t)
	if spec := n.spec("pvc-1", asDevice); n.devices.CanHandle(spec) || n.plugin.CanHandle(spec) {
		t.Error("a share as a device is served")
	}
}

//proves:nfs/claim
func TestAShareIsStagedOnceForAllPodsAndGoesWithTheLast(t *testing.T) {
	n := newShareNode(t)
	spec := n.spec("pvc-1")
	n.must(n.publish("first", spec))
	n.restart()
	n.must(n.publish("second", spec), n.publish("first", spec))
	if points := n.mounted(); len(points) != 3 {
		t.Errorf("mounted: %+v", points)
	}
	for _, pod := range []string{"first", "second"} {
		if there, err := n.plugin.IsPublished(mounttest.TableOf(t), spec, n.at(pod)); !there || err != nil {
			t.Errorf("%s: got %v, %v", pod, there, err)
		}
	}
	n.must(n.unpublish("first"), n.unpublish("second"), n.unpublish("second"))
	n.mustBeClean()
}

//proves:nfs/readOnly
func TestAPodThatOnlyReadsAShareKeepsNoOtherFromWriting(t *testing.T) {
	n := newShareNode(t)
	n.must(n.publish("reader", n.spec("pvc-1", reading)), n.publish("writer", n.spec("pvc-1")))
	n.must(os.WriteFile(filepath.Join(n.plugin.Path(n.at("writer")), "file"), nil, 0o600))
	if err := os.WriteFile(filepath.Join(n.plugin.Path(n.at("reader")), "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("the reader's writing gave %v", err)
	}
	n.must(n.unpublish("writer"), n.unpublish("reader"))
	n.mustBeClean()
}

// The agent opens nothing on a server, which may hang.
func TestAShareKeepsItsGroup(t *testing.T) {
	n := newShareNode(t)
	n.must(n.publish("pod", n.spec("pvc-1", forGroup(4711))))
	mustBelongTo(t, n.servers.PathOf(shareServer, "pvc-1"), 0)
	n.must(n.unpublish("pod"))
	n.mustBeClean()
}

func TestAShareWhoseNameWasUsedAgainIsAnother(t *testing.T) {
	n := newShareNode(t)
	n.must(n.publish("pod", n.spec("pvc-1")))
	if err := n.publish("pod", n.spec("pvc-2")); !errors.Is(err, mount.ErrMounted) {
		t.Errorf("over the first one: got %v", err)
	}
	// As after a reboot.
	n.must(mount.UnmountBelow(mount.Kernel{}, n.dir))
	n.restart()
	n.must(n.publish("pod", n.spec("pvc-2")), os.WriteFile(filepath.Join(n.plugin.Path(n.at("pod")), "file"), nil, 0o600))
	if _, err := os.Lstat(filepath.Join(n.servers.PathOf(shareServer, "pvc-2"), "file")); err != nil {
		t.Error(err)
	}
	n.must(n.unpublish("pod"))
	n.mustBeClean()
}

//proves:nfs/hangs
func TestAShareOfASilentServerHoldsUpNoOther(t *testing.T) {
	n := newShareNode(t)
	n.must(n.publish("silent", n.spec("pvc-1")))
	n.servers.silent = n.mounted()[0].Path
	if filepath.Base(n.servers.silent) != "globalmount" {
		n.servers.silent = n.mounted()[1].Path
	}
	ended := make(chan error)
	go func() { ended <- n.unpublish("silent") }()
	swept := make(chan struct{})
	nodetest.Eventually(t, "it is only staged", func() bool { return len(n.mounted()) == 1 })
	go func() {
		n.plugin.Sweep(t.Context())
		close(swept)
	}()
	n.must(n.publish("other", n.spec("pvc-2")), n.unpublish("other"))
	close(n.servers.released)
	n.must(<-ended)
	<-swept
	n.mustBeClean()
}

//proves:nfs/hangs
func TestSharesHaveAQueueOfTheirOwn(t *testing.T) {
	n := newShareNode(t)
	spec, want := n.spec("pvc-1"), "kubernetes.io/csi:"+stowagev1alpha1.NFSDriver
	if got := n.plugin.Queue(spec, n.at("pod")); got != want {
		t.Errorf("before it is mounted: %s", got)
	}
	n.must(n.publish("pod", spec))
	if got := n.plugin.Queue(volumes.Spec{}, n.at("pod")); got != want {
		t.Errorf("by the pod's directory: %s", got)
	}
	local := n.spec("pvc-1")
	local.PersistentVolume.Spec.CSI.Driver = stowagev1alpha1.LocalDriver
	if got := n.plugin.Queue(local, n.at("other")); got != "kubernetes.io/csi" {
		t.Errorf("a local volume's: %s", got)
	}
	n.must(n.unpublish("pod"))
}

func TestAShareWhoseRecordIsLostGoesWithItsPod(t *testing.T) {
	n := newShareNode(t)
	n.must(n.publish("pod", n.spec("pvc-1")), os.Remove(filepath.Join(n.at("pod"), "vol_data.json")))
	n.must(n.unpublish("pod"))
	n.mustBeClean()
}
