package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/volume"
)

// diskProcess is an agent on a machine of a cloud.
type diskProcess struct {
	*process
	cloud *hotplug.Loop
	disks []hotplug.Device
}

func newDiskProcess(t *testing.T) *diskProcess {
	t.Helper()
	p, folder := &diskProcess{}, t.TempDir()
	p.cloud = hotplug.NewLoop(hotplug.Folder(folder))
	// After the agent's own clean-up, and before the folder goes.
	t.Cleanup(func() {
		for _, disk := range p.disks {
			if err := p.cloud.Detach(context.Background(), disk); err != nil {
				t.Error(err)
			}
		}
	})
	p.process = newProcess(t, startServer(t))
	createNode(t, p.client)
	p.arguments = append(p.arguments, "--device-dir="+filepath.Join(folder, "p", "z", "n1"))
	return p
}

// diskVolume makes an empty disk, and a claim that is bound to it.
func (p *diskProcess) diskVolume(t *testing.T, name string, mode corev1.PersistentVolumeMode) {
	t.Helper()
	image := filepath.Join(filepath.Dir(p.root), name)
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 16*mebibyte)); err != nil {
		t.Fatal(err)
	}
	p.disks = append(p.disks, hotplug.Device{Project: "p", Zone: "z", Instance: "n1", Name: name, Image: image})
	p.bindToSource(t, p.createClaim(t, name, mode, 16*mebibyte), corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.GCEDriver, VolumeHandle: name, FSType: "ext4",
	})
}

// attach attaches all disks, and says so, as the manager does.
func (p *diskProcess) attach(t *testing.T) {
	t.Helper()
	var attached []corev1.AttachedVolume
	for _, disk := range p.disks {
		if err := p.cloud.Attach(t.Context(), disk); err != nil {
			t.Fatal(err)
		}
		object := &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: volume.AttachmentName(stowagev1alpha1.GCEDriver, disk.Name, "n1")},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: stowagev1alpha1.GCEDriver, NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &disk.Name},
			},
		}
		object, err := p.client.StorageV1().VolumeAttachments().Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		object.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{
			backend.DeviceMetadata: disk.Name, backend.SerialMetadata: disk.Name,
		}}
		if _, err := p.client.StorageV1().VolumeAttachments().UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		attached = append(attached, corev1.AttachedVolume{Name: volume.UniqueName(stowagev1alpha1.GCEDriver, disk.Name)})
	}
	p.sayAttached(t, attached)
}

func (p *diskProcess) sayAttached(t *testing.T, attached []corev1.AttachedVolume) {
	t.Helper()
	await(t, "the node's status is written", func() bool {
		node := p.node(t)
		node.Status.VolumesAttached = attached
		_, err := p.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
		return err == nil
	})
}

// detach detaches all disks once none is in use.
func (p *diskProcess) detach(t *testing.T) {
	t.Helper()
	await(t, "no disk is in use", func() bool { return len(p.node(t).Status.VolumesInUse) == 0 })
	p.sayAttached(t, nil)
	for _, disk := range p.disks {
		name := volume.AttachmentName(stowagev1alpha1.GCEDriver, disk.Name, "n1")
		err := errors.Join(p.client.StorageV1().VolumeAttachments().Delete(t.Context(), name, metav1.DeleteOptions{}), p.cloud.Detach(t.Context(), disk))
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (p *diskProcess) node(t *testing.T) *corev1.Node {
	t.Helper()
	node, err := p.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// mustBeKnown fails if a disk is mounted, and may be detached.
func (p *diskProcess) mustBeKnown(t *testing.T) {
	t.Helper()
	inUse := p.node(t).Status.VolumesInUse
	for _, disk := range p.disks {
		sum := sha256.Sum256([]byte(disk.Name))
		seen, err := filepath.Glob(filepath.Join(p.root, stagedDir, stowagev1alpha1.GCEDriver, hex.EncodeToString(sum[:]), "disk"))
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) > 0 && !slices.Contains(inUse, volume.UniqueName(stowagev1alpha1.GCEDriver, disk.Name)) {
			t.Errorf("of disk %s there is %v on the node, and in use are %v", disk.Name, seen, inUse)
		}
	}
}

//proves:csi/crash
func TestAnAgentThatIsKilledAtAnyPointLosesAndLeaksNoDisk(t *testing.T) {
	mounttest.NeedsRoot(t)
	// For each disk its stage, and for each of two pods both volumes.
	const all = 2 + 2*2
	p := newDiskProcess(t)
	claims := []string{"files", "device"}
	p.diskVolume(t, "files", corev1.PersistentVolumeFilesystem)
	p.diskVolume(t, "device", corev1.PersistentVolumeBlock)
	pods := p.client.CoreV1().Pods("default")

	for round := range all {
		t.Logf("round %d", round)
		p.attach(t)
		p.start(t)
		for i := range 2 {
			if _, err := pods.Create(t.Context(), podWith(fmt.Sprintf("pod-%d", i), claims...), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		await(t, "some of it is mounted", func() bool { return p.mounted(t) >= round })
		p.kill()
		p.mustBeKnown(t)
		p.start(t)
		await(t, "everything is mounted once", func() bool { return p.mounted(t) == all })
		p.mustBeKnown(t)

		p.mustKeep(t, round)
		deleteAll(t.Context(), t, p.client)
		await(t, "some of it is unmounted", func() bool { return p.mounted(t) <= all-round })
		p.kill()
		p.mustBeKnown(t)
		p.start(t)
		await(t, "nothing is left on the node", func() bool {
			left, err := filepath.Glob(filepath.Join(p.root, stagedDir, stowagev1alpha1.GCEDriver, "*"))
			return err == nil && len(left) == 0 && p.podDirs() == 0 && p.mounted(t) == 0
		})
		await(t, "nothing is left of the pods", func() bool {
			left, err := pods.List(t.Context(), metav1.ListOptions{})
			return err == nil && len(left.Items) == 0
		})
		p.detach(t)
		p.kill()
	}
}

// slowly is a mkfs.ext4 that leaves half a file system, says so, and waits.
const slowly = `#!/bin/sh
for device; do :; done
%s "$@" && dd if=/dev/zero of="$device" bs=4096 seek=1 count=16 conv=notrunc,fsync 2>/dev/null
touch %[2]s
exec 9<"$device"
while [ ! -e %[2]s.end ]; do sleep 0.05; done
`

func TestAnAgentThatIsKilledWhileItFormatsFormatsAnew(t *testing.T) {
	mounttest.NeedsRoot(t)
	program, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Skip("NOT RUN: mkfs.ext4 is missing: install e2fsprogs")
	}
	p := newDiskProcess(t)
	p.diskVolume(t, "files", corev1.PersistentVolumeFilesystem)
	p.attach(t)
	tools := t.TempDir()
	half := filepath.Join(tools, "half")
	if err := os.WriteFile(filepath.Join(tools, "mkfs.ext4"), fmt.Appendf(nil, slowly, program, half), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(half+".end", nil, 0o600) })
	path := os.Getenv("PATH")
	t.Setenv("PATH", tools+":"+path)
	p.start(t)
	if _, err := p.client.CoreV1().Pods("default").Create(t.Context(), podWith("pod", "files"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "half of a file system is made", func() bool { _, err := os.Stat(half); return err == nil })
	p.kill()
	p.mustBeKnown(t)
	if p.mounted(t) > 0 {
		t.Fatal("half a file system is mounted")
	}
	t.Setenv("PATH", path)
	p.start(t)
	if err := os.WriteFile(half+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "it is mounted", func() bool { return p.mounted(t) == 2 })
	p.mustKeep(t, 0)
	deleteAll(t.Context(), t, p.client)
	p.detach(t)
}
