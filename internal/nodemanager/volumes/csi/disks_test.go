package csi_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

//proves:csi/gce
func TestAnEmptyDiskIsFormattedOnceAndKeepsItsData(t *testing.T) {
	for name, kind := range map[string]func(*volumes.Spec){"ext4": func(*volumes.Spec) {}, "xfs": onXFS} {
		t.Run(name, func(t *testing.T) {
			n := newDiskNode(t, 320*mebibyte)
			seen := n.publish("first", n.spec(kind))
			n.must(os.WriteFile(filepath.Join(seen, "hello"), []byte("world"), 0o600))
			if found := n.inUse(); !slices.Equal(found, []corev1.UniqueVolumeName{"kubernetes.io/csi/gce.stowage.dev^pvc-1"}) {
				t.Errorf("in use are %v", found)
			}
			// Another pod of the node sees the same, and on goes the disk to another node.
			again := n.publish("second", n.spec(kind))
			if text, err := os.ReadFile(filepath.Join(again, "hello")); string(text) != "world" {
				t.Errorf("the second pod reads %q (%v)", text, err)
			}
			n.unpublish("first", n.spec(kind))
			if there, err := n.isPublished("second", n.spec(kind)); !there || err != nil {
				t.Errorf("the second pod's is gone with the first one's: %v", err)
			}
			n.unpublish("second", n.spec(kind))
			n.mustBeClean()
			seen = n.publish("third", n.spec(kind))
			if text, err := os.ReadFile(filepath.Join(seen, "hello")); string(text) != "world" {
				t.Errorf("after it came back, it holds %q (%v)", text, err)
			}
			n.unpublish("third", n.spec(kind))
			n.mustBeClean()
		})
	}
}

//proves:csi/gce
func TestADiskThatHoldsAnythingIsNeverFormatted(t *testing.T) {
	for _, held := range []struct {
		text    string
		at      int64
		message string
	}{
		{"LUKS\xba\xbe\x00\x02", 0, "LUKS"},
		{"LABELONE\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x20\x00\x00\x00LVM2 001", 512, "take what you need"},
		{"a database", 1 << 20, "take what you need"},
		{"at the end", imageBytes - 64, "take what you need"},
	} {
		n := newDiskNode(t, imageBytes)
		file, err := os.OpenFile(n.path(), os.O_WRONLY, 0)
		n.must(err)
		_, err = file.WriteAt([]byte(held.text), held.at)
		n.must(err, file.Sync(), file.Close())
		before, err := os.ReadFile(n.image())
		n.must(err)
		if err := n.tryPublish("pod", n.spec()); err == nil || !strings.Contains(err.Error(), held.message) {
			t.Errorf("%q: got %v", held.text, err)
		}
		if after, err := os.ReadFile(n.image()); err != nil || !bytes.Equal(after, before) {
			t.Errorf("%q: it was changed (%v)", held.text, err)
		}
		n.unpublish("pod", n.spec())
		n.mustBeClean()
	}
}

func TestADiskForReadersIsNeitherFormattedNorGrownNorWritten(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	if err := n.tryPublish("pod", n.spec(forReaders)); err == nil || !strings.Contains(err.Error(), "isn't formatted") {
		t.Errorf("an empty one gave %v", err)
	}
	n.unpublish("pod", n.spec(forReaders))
	n.publish("pod", n.spec())
	n.unpublish("pod", n.spec())
	n.detach()
	n.must(os.Truncate(n.image(), 4*imageBytes))
	disk := n.disk()
	disk.ReadOnly = true
	n.must(n.cloud.Attach(t.Context(), disk))
	if err := n.tryPublish("pod", n.spec()); err == nil || !strings.Contains(err.Error(), "reading only") {
		t.Errorf("one that is to be written gave %v", err)
	}
	n.unpublish("pod", n.spec())
	seen := n.publish("pod", n.spec(forReaders))
	if room := roomIn(t, seen); room > imageBytes {
		t.Errorf("it has grown to %d bytes", room)
	}
	if err := os.WriteFile(filepath.Join(seen, "hello"), nil, 0o600); err == nil {
		t.Error("it was written")
	}
	n.unpublish("pod", n.spec(forReaders))
	n.mustBeClean()
}

//proves:csi/expansion
func TestADiskIsGrownWhileItIsMounted(t *testing.T) {
	n := newDiskNode(t, 320*mebibyte)
	seen := n.publish("pod", n.spec(onXFS))
	n.must(os.Truncate(n.image(), 640*mebibyte), n.cloud.Resize(t.Context(), n.disk()))
	if !n.plugin.CanGrow(n.table(), n.spec(onXFS).PersistentVolume) {
		t.Error("it can't grow")
	}
	for range 2 {
		if has, err := n.plugin.Grow(t.Context(), n.spec(onXFS).PersistentVolume); has != 640*mebibyte || err != nil {
			t.Fatalf("got %d, %v", has, err)
		}
	}
	if room := roomIn(t, seen); room < 500*mebibyte {
		t.Errorf("it has %d bytes", room)
	}
	n.unpublish("pod", n.spec(onXFS))
	n.mustBeClean()
}

//proves:csi/gce-Block
func TestADiskIsADeviceForPodsThatAskForOne(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	spec := n.spec(asDevice)
	seen := n.publish("pod", spec)
	n.must(os.WriteFile(seen, []byte("raw data"), 0))
	n.must(os.Truncate(n.image(), 2*imageBytes), n.cloud.Resize(t.Context(), n.disk()))
	if has, err := n.devices.Grow(t.Context(), spec.PersistentVolume); has != 2*imageBytes || err != nil {
		t.Errorf("it has %d bytes (%v)", has, err)
	}
	n.restart()
	if there, err := n.isPublished("pod", spec); !there || err != nil {
		t.Errorf("it isn't there: %v", err)
	}
	n.unpublish("pod", spec)
	n.mustBeClean()
	reader := n.spec(asDevice, reading)
	seen = n.publish("reader", reader)
	if err := os.WriteFile(seen, []byte("changed!"), 0); err == nil {
		t.Error("a pod that only reads wrote")
	}
	if text, err := os.ReadFile(seen); err != nil || !strings.HasPrefix(string(text), "raw data") {
		t.Errorf("it holds %.8q (%v)", text, err)
	}
	n.unpublish("reader", reader)
	n.mustBeClean()
}

//proves:csi/gce
func TestADiskIsNotTakenByItsNameAlone(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	spec := n.spec(func(spec *volumes.Spec) { spec.Attachment.Serial = "another" })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.plugin.Publish(ctx, spec, n.at("pod")); !errors.Is(err, clouddisk.ErrOtherDisk) {
		t.Errorf("got %v", err)
	}
	spec.Attachment = nil
	if err := n.tryPublish("pod", spec); err == nil || !strings.Contains(err.Error(), "isn't attached") {
		t.Errorf("one that isn't attached gave %v", err)
	}
	n.unpublish("pod", spec)
	n.mustBeClean()
}

//proves:csi/mountOptions
func TestADiskIsMountedWithTheVolumesOptions(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	spec := n.spec(func(spec *volumes.Spec) { spec.PersistentVolume.Spec.MountOptions = []string{"noatime", "commit=17"} })
	seen := n.publish("pod", spec)
	content, err := os.ReadFile("/proc/self/mounts")
	n.must(err)
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, " "+seen+" ") && (!strings.Contains(line, "noatime") || !strings.Contains(line, "commit=17")) {
			t.Errorf("it is mounted so: %s", line)
		}
	}
	n.unpublish("pod", spec)
	n.mustBeClean()
}

func TestTwoVolumeObjectsDoNotShareADisk(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	n.publish("pod", n.spec())
	twin := n.spec(func(spec *volumes.Spec) { spec.PersistentVolume.Name, spec.PersistentVolume.UID = "twin", "twin" })
	again := n.spec(func(spec *volumes.Spec) { spec.PersistentVolume.UID = "later" })
	copied := n.spec(func(spec *volumes.Spec) {
		spec.PersistentVolume.Name, spec.PersistentVolume.Spec.CSI.VolumeHandle = "copied", "copied"
	})
	for _, other := range []volumes.Spec{twin, again, copied} {
		err := n.tryPublish("other", other)
		if !errors.Is(err, volumes.ErrOtherVolume) && !errors.Is(err, mount.ErrMounted) {
			t.Errorf("another one, of name %s, gave %v", other.Name(), err)
		}
		n.unpublish("other", other)
		if there, err := n.isPublished("pod", n.spec()); !there || err != nil {
			t.Errorf("the first one's is %v (%v)", there, err)
		}
	}
	n.unpublish("pod", n.spec())
	n.mustBeClean()
}

// A bind by hand, which no pod has, keeps the disk staged until it is unmounted.
func TestADiskThatIsMountedElsewhereStaysInUse(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	elsewhere := t.TempDir()
	staged, err := os.Open(n.publish("pod", n.spec()))
	n.must(err)
	n.must(mount.Kernel{}.Bind(staged, elsewhere, mount.ReadWrite), staged.Close())
	n.unpublish("pod", n.spec())
	n.plugin.Sweep(t.Context())
	if len(n.inUse()) != 1 {
		t.Error("it doesn't count as in use any more")
	}
	n.must(mount.Kernel{}.Unmount(elsewhere))
	n.plugin.Sweep(t.Context())
	n.mustBeClean()
}

func TestADiskThatIsMountedInAnotherNamespaceIsNotUnpublished(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	n.publish("pod", n.spec())
	staged, err := filepath.Glob(filepath.Join(n.dir, "agent", "plugins", "kubernetes.io", "csi", "*", "*", "globalmount"))
	n.must(err)
	kept, err := os.Open(staged[0])
	n.must(err, mount.Kernel{}.Detach(staged[0])) // an open file keeps the mount
	if err := n.plugin.Unpublish(t.Context(), n.at("pod")); !errors.Is(err, mount.ErrMounted) {
		t.Errorf("got %v", err)
	}
	if len(n.inUse()) != 1 {
		t.Error("it doesn't count as in use any more")
	}
	n.must(kept.Close())
	n.unpublish("pod", n.spec())
	n.mustBeClean()
}
