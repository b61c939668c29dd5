package nodemanager

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	utilexec "k8s.io/utils/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/gcepd"
	"github.com/stowage-dev/stowage/internal/nodemanager/inuse"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Volumes that are disks of a cloud, which stay attached to the node. The first has data,
// the second is empty each time that the pod comes.
const (
	killedDisk      = "csi disk"
	killedEmptyDisk = "csi empty disk"
	killedBlockDisk = "csi disk as block"
)

func (n *killedNode) isDisk() bool {
	return strings.HasSuffix(strings.TrimSuffix(n.Volume, " as block"), " disk")
}

// cloudDisk is the node's disk, as its cloud attaches it.
func (n *killedNode) cloudDisk() hotplug.Device {
	return hotplug.Device{Project: "p", Zone: "z", Instance: "n1", Name: "data", Image: n.path("cloud", "data")}
}

func (n *killedNode) cloud() *hotplug.Loop { return hotplug.NewLoop(hotplug.Folder(n.path("dev"))) }

// attachDisk makes the disk, and attaches it until the test ends.
func (n *killedNode) attachDisk(t *testing.T) {
	t.Helper()
	if !n.isDisk() {
		return
	}
	disk := n.cloudDisk()
	err := errors.Join(os.Mkdir(n.path("cloud"), 0o700), os.WriteFile(disk.Image, nil, 0o600), os.Truncate(disk.Image, imageBytes))
	if n.Volume == killedDisk {
		err = errors.Join(err, exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-d", n.path("host"), disk.Image).Run())
	}
	if err = errors.Join(err, n.cloud().Attach(t.Context(), disk)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.cloud().Detach(context.Background(), disk); err != nil {
			t.Error(err)
		}
	})
}

// clearDisk empties the disk that is to be empty. Nothing may be mounted.
func (n *killedNode) clearDisk(t *testing.T) {
	t.Helper()
	if n.Volume != killedEmptyDisk {
		return
	}
	disk, err := os.OpenFile(filepath.Join(n.devices().Path, "google-data"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = disk.Write(make([]byte, imageBytes))
	if err := errors.Join(err, disk.Sync(), disk.Close()); err != nil {
		t.Fatal(err)
	}
}

func (n *killedNode) devices() clouddisk.DiskFolder {
	return clouddisk.NewDiskFolder(n.path("dev", "p", "z", "n1"))
}

// disks are the node manager's.
func (n *killedNode) disks(kernel mount.Kernel) (*gcepd.Driver, error) {
	return gcepd.New(stowagev1alpha1.GCEDriver, gcepd.Options{
		Mounter: kernel, Systems: filesystem.NewFileSystems(utilexec.New()), Finder: n.devices(),
		Folder: filepath.Join(n.root(), "staged", stowagev1alpha1.GCEDriver), Earlier: filepath.Join(n.root(), "disks"),
	})
}

// inUse is no disks at all where the pod has none.
func (n *killedNode) inUse(disks *gcepd.Driver) inuse.Disks {
	if !n.isDisk() {
		return nil
	}
	return disks
}

func (n *killedNode) diskSource() corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.GCEDriver, VolumeHandle: n.cloudDisk().Name, FSType: "ext4",
	}}
}

// attached is what says that the disk of a volume is attached to the node.
func (n *killedNode) attached(pv *corev1.PersistentVolume) []client.Object {
	name := n.cloudDisk().Name
	node := &corev1.Node{}
	node.Name = "n1"
	node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: volume.UniqueName(stowagev1alpha1.GCEDriver, name)}}
	attachment := &storagev1.VolumeAttachment{
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: stowagev1alpha1.GCEDriver, NodeName: node.Name,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
		},
		Status: storagev1.VolumeAttachmentStatus{
			Attached: true, AttachmentMetadata: map[string]string{backend.DeviceMetadata: name, backend.SerialMetadata: name},
		},
	}
	attachment.Name = volume.AttachmentName(stowagev1alpha1.GCEDriver, name, node.Name)
	return []client.Object{node, attachment}
}
