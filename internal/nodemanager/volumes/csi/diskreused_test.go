package csi_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/gcemock/hotplug"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// ofAnother makes it another volume, whose disk is pvc-2.
func ofAnother(spec *volumes.Spec) {
	volume := spec.PersistentVolume
	volume.Name, volume.UID, volume.Spec.CSI.VolumeHandle = "pv-2", "uid-2", "pvc-2"
	spec.Attachment = &volumes.Attachment{Device: "pvc-2", Serial: "pvc-2"}
}

func TestAPodWhoseDeviceIsGoneDoesNotSeeTheDiskThatGotItsNumber(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	seen, number := n.publish("pod", n.spec(asDevice)), n.path()
	n.detach() // by force: the node was lost, and its pods run on
	other := n.disk()
	other.Name, other.Image = "pvc-2", filepath.Join(n.dir, "other")
	n.must(os.WriteFile(other.Image, nil, 0o600), os.Truncate(other.Image, imageBytes))
	n.must(n.cloud.Attach(t.Context(), other))
	defer func(cloud *hotplug.Loop) { n.must(cloud.Detach(t.Context(), other)) }(n.cloud)
	if path, err := os.Readlink(filepath.Join(n.folder().Path, "google-pvc-2")); path != number {
		t.Skipf("NOT RUN: the second disk is %s and not %s (%v)", path, number, err)
	}

	at := n.atFor("other", n.spec(asDevice, ofAnother))
	n.must(n.devices.Publish(t.Context(), n.spec(asDevice, ofAnother), at))

	if n.table().IsMountPoint(seen) {
		t.Error("the first volume's pod opens the second volume's disk")
	}
	if len(n.inUse()) != 2 {
		t.Errorf("in use are %v", n.inUse())
	}
	if there, err := n.devices.IsPublished(n.table(), n.spec(asDevice, ofAnother), at); !there || err != nil {
		t.Errorf("the second volume isn't there: %v", err)
	}
	n.unpublish("pod", n.spec(asDevice))
	n.must(n.devices.Unpublish(t.Context(), at))
	n.attach()
	n.mustBeClean()
}

func TestAnotherKindOfVolumeWithTheNameOfADiskIsNoUserOfIt(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	n.publish("pod", n.spec())
	// A pod's author chooses the name of its emptyDir.
	memory := n.in("stranger", "volumes/kubernetes.io~empty-dir", "pv")
	n.must(os.Mkdir(memory, 0o750), unix.Mount("tmpfs", memory, "tmpfs", 0, ""))

	n.unpublish("pod", n.spec())

	if left := n.inUse(); len(left) > 0 {
		t.Errorf("still in use: %v", left)
	}
	n.publish("pod", n.spec())
	n.makeGone()
	n.publish("pod", n.spec())
	if !n.table().IsMountPoint(memory) {
		t.Error("what the other pod had in memory went with the disk")
	}
	n.unpublish("pod", n.spec())
	n.must(unix.Unmount(memory, 0), os.Remove(memory))
	n.mustBeClean()
}
