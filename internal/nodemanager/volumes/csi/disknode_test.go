package csi_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/gcepd"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
)

// diskNode is a cloud's node with one empty disk attached, and the agent's folders.
type diskNode struct {
	*testing.T
	dir     string
	cloud   *hotplug.Loop
	mounter mounting.Mounter
	systems filesystem.FileSystems
	finder  clouddisk.DiskFolder
	disks   *gcepd.Driver
	plugin  csi.Plugin
	devices csi.DevicePlugin
}

func newDiskNode(t *testing.T, bytes int64) *diskNode {
	t.Helper()
	mounttest.NeedsRoot(t)
	for _, program := range []string{"mkfs.ext4", "mkfs.xfs", "blkid"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: %s is missing: install e2fsprogs and xfsprogs", program)
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &diskNode{T: t, dir: dir, cloud: hotplug.NewLoop(hotplug.Folder(filepath.Join(dir, "dev"))), mounter: mount.Kernel{}, systems: systems}
	n.finder = n.folder()
	n.must(os.WriteFile(n.image(), nil, 0o600), os.Truncate(n.image(), bytes))
	n.attach()
	n.restart()
	t.Cleanup(n.clean)
	return n
}

func (n *diskNode) must(errs ...error) {
	n.Helper()
	if err := errors.Join(errs...); err != nil {
		n.Fatal(err)
	}
}

// image is the file behind the disk: the data in the cloud.
func (n *diskNode) image() string { return filepath.Join(n.dir, "data") }

func (n *diskNode) disk() hotplug.Device {
	return hotplug.Device{Project: "p", Zone: "z", Instance: "i", Name: "pvc-1", Image: n.image()}
}

func (n *diskNode) attach() { n.Helper(); n.must(n.cloud.Attach(context.Background(), n.disk())) }
func (n *diskNode) detach() { n.Helper(); n.must(n.cloud.Detach(context.Background(), n.disk())) }

func (n *diskNode) folder() clouddisk.DiskFolder {
	return clouddisk.NewDiskFolder(filepath.Join(n.dir, "dev", "p", "z", "i"))
}

// path is the path of the device, while it is attached.
func (n *diskNode) path() string {
	n.Helper()
	path, err := os.Readlink(filepath.Join(n.folder().Path, "google-pvc-1"))
	n.must(err)
	return path
}

// restart makes the volume types again, as an agent does that starts.
func (n *diskNode) restart() {
	n.Helper()
	var err error
	n.disks, err = gcepd.New(stowagev1alpha1.GCEDriver, gcepd.Options{
		Mounter: n.mounter, Systems: n.systems, Finder: n.finder, Folder: filepath.Join(n.dir, "agent", "staged"),
		Earlier: filepath.Join(n.dir, "agent", "disks"),
	})
	n.must(err)
	caller, err := csi.NewCaller(csi.CallerOptions{Mounter: n.mounter, Root: filepath.Join(n.dir, "agent"), Drivers: []drivers.Driver{n.disks}})
	n.must(err)
	n.plugin, n.devices = csi.New(caller), csi.NewDevices(caller)
}

// spec is the volume, as a pod asks for it.
func (n *diskNode) spec(changes ...func(*volumes.Spec)) volumes.Spec {
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.UID = "pv", "uid"
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.GCEDriver, VolumeHandle: "pvc-1", FSType: "ext4"}
	spec := volumes.Spec{PersistentVolume: volume, Attachment: &volumes.Attachment{Device: "pvc-1", Serial: "pvc-1"}}
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

func onXFS(spec *volumes.Spec) { spec.PersistentVolume.Spec.CSI.FSType = "xfs" }

func forReaders(spec *volumes.Spec) {
	spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
}

func (n *diskNode) pluginFor(spec volumes.Spec) volumes.Grower {
	if spec.IsBlock() {
		return n.devices
	}
	return n.plugin
}

// at is the directory of the volume in a pod's.
func (n *diskNode) at(pod string) string {
	n.Helper()
	return n.in(pod, "volumes/kubernetes.io~csi", "pv")
}

// atFor is the same, or the file that is the volume's device.
func (n *diskNode) atFor(pod string, spec volumes.Spec) string {
	n.Helper()
	if spec.IsBlock() {
		return n.in(pod, "volumeDevices/kubernetes.io~csi", spec.Name())
	}
	return n.in(pod, "volumes/kubernetes.io~csi", spec.Name())
}

// in is where a volume of a type has its name in a pod's directory.
func (n *diskNode) in(pod, folder, volume string) string {
	n.Helper()
	parent := filepath.Join(n.dir, "agent", "pods", pod, folder)
	n.must(os.MkdirAll(parent, 0o750))
	return filepath.Join(parent, volume)
}

func (n *diskNode) tryPublish(pod string, spec volumes.Spec) error {
	n.Helper()
	return n.pluginFor(spec).Publish(n.Context(), spec, n.atFor(pod, spec))
}

// publish publishes the volume to a pod and returns where the pod sees it.
func (n *diskNode) publish(pod string, spec volumes.Spec) string {
	n.Helper()
	n.must(n.tryPublish(pod, spec))
	return n.pluginFor(spec).Path(n.atFor(pod, spec))
}

func (n *diskNode) unpublish(pod string, spec volumes.Spec) {
	n.Helper()
	n.must(n.pluginFor(spec).Unpublish(n.Context(), n.atFor(pod, spec)))
}

func (n *diskNode) isPublished(pod string, spec volumes.Spec) (bool, error) {
	n.Helper()
	return n.pluginFor(spec).IsPublished(n.table(), spec, n.atFor(pod, spec))
}

func (n *diskNode) table() mount.Table {
	n.Helper()
	table, err := mount.Kernel{}.Table()
	n.must(err)
	return table
}

// inUse lists the disks for which a detach has to wait.
func (n *diskNode) inUse() []corev1.UniqueVolumeName {
	n.Helper()
	names, err := n.disks.InUse()
	n.must(err)
	return names
}

// mustBeClean fails if anything is left of what was published.
func (n *diskNode) mustBeClean() {
	n.Helper()
	if left := n.table().Below(n.dir); len(left) > 0 {
		n.Errorf("still mounted: %+v", left)
	}
	if left := n.inUse(); len(left) > 0 {
		n.Errorf("still in use: %v", left)
	}
	for _, pattern := range []string{"disks", "staged/*", "plugins/kubernetes.io/csi/*/*", "pods/*/volume*/*/*"} {
		if left, _ := filepath.Glob(filepath.Join(n.dir, "agent", pattern)); len(left) > 0 {
			n.Errorf("still there: %v", left)
		}
	}
	n.detach()
	n.attach()
}

// clean removes what a failed test left.
func (n *diskNode) clean() {
	if err := mount.UnmountBelow(mount.Kernel{}, n.dir); err != nil {
		n.Error(err)
	}
	n.detach()
}
