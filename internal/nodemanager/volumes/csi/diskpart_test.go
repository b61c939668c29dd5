package csi_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// The partition that disks of tests have.
const partStart, partBytes = 1 * mebibyte, 24 * mebibyte

// withPart adds a partition of the disk to the kernel's table, as when the kernel reads one from
// the disk.
func (n *diskNode) withPart() {
	n.Helper()
	disk, err := os.OpenFile(n.path(), os.O_RDWR, 0)
	n.must(err)
	defer disk.Close()
	status, err := unix.IoctlLoopGetStatus64(int(disk.Fd()))
	n.must(err)
	status.Flags |= unix.LO_FLAGS_PARTSCAN
	n.must(unix.IoctlLoopSetStatus64(int(disk.Fd()), status))
	part := struct {
		start, length int64
		number        int32
		names         [128]byte
	}{start: partStart, length: partBytes, number: 3}
	ask := struct {
		op, flags, size int32
		data            unsafe.Pointer
	}{op: 1, size: int32(unsafe.Sizeof(part)), data: unsafe.Pointer(&part)}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, disk.Fd(), unix.BLKPG, uintptr(unsafe.Pointer(&ask))); errno != 0 {
		n.Skipf("NOT RUN: this kernel makes no partitions: %v", errno)
	}
}

func ofPart(number string) func(*volumes.Spec) {
	return func(spec *volumes.Spec) {
		spec.PersistentVolume.Spec.CSI.VolumeAttributes = map[string]string{"partition": number}
	}
}

func (n *diskNode) bytesOfImage() []byte {
	n.Helper()
	content, err := os.ReadFile(n.image())
	n.must(err)
	return content
}

//proves:gcePersistentDisk/partition
func TestAPartitionIsMountedAndTheRestOfItsDiskLeftAsItIs(t *testing.T) {
	n := newDiskNode(t, 32*mebibyte)
	n.withPart()
	made := filepath.Join(n.dir, "made")
	n.must(os.WriteFile(made, nil, 0o600), os.Truncate(made, partBytes))
	n.must(n.systems.Format(t.Context(), made, "ext4", partBytes))
	content, err := os.ReadFile(made)
	n.must(err)
	n.must(os.WriteFile(n.path()+"p3", content, 0o600))
	outside := n.bytesOfImage()[:partStart]

	spec := n.spec(ofPart("3"))
	seen := n.publish("pod", spec)
	n.must(os.WriteFile(filepath.Join(seen, "hello"), []byte("world"), 0o600))
	if there, err := n.isPublished("pod", spec); !there || err != nil {
		t.Errorf("it isn't there: %v", err)
	}
	n.restart()
	again := n.publish("second", spec)
	if text, err := os.ReadFile(filepath.Join(again, "hello")); string(text) != "world" {
		t.Errorf("after a restart it holds %q (%v)", text, err)
	}
	n.unpublish("pod", spec)
	n.unpublish("second", spec)
	n.mustBeClean()
	if !bytes.Equal(outside, n.bytesOfImage()[:partStart]) {
		t.Error("what is before the partition was changed")
	}
}

//proves:gcePersistentDisk/partition
func TestAPartitionIsNeverFormattedAndNoOtherIsTakenForIt(t *testing.T) {
	for name, test := range map[string]struct {
		part string
		says string
	}{
		"an empty one":             {"3", "it isn't formatted"},
		"one that isn't there":     {"1", "has no partition 1"},
		"what is no number of one": {"0", "isn't the number"},
		"a path":                   {"../sda1", "isn't the number"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newDiskNode(t, 32*mebibyte)
			n.withPart()
			before := n.bytesOfImage()
			err := n.tryPublish("pod", n.spec(ofPart(test.part)))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			n.unpublish("pod", n.spec(ofPart(test.part)))
			n.mustBeClean()
			if !bytes.Equal(before, n.bytesOfImage()) {
				t.Error("the disk was written")
			}
		})
	}
}

//proves:gcePersistentDisk/data
func TestAnExistingDiskIsFormattedOnlyIfItIsEmptyAndMayBeWritten(t *testing.T) {
	existing := func(spec *volumes.Spec) {
		spec.PersistentVolume.Spec.CSI.VolumeHandle = "projects/p/zones/z/disks/legacy"
		spec.PersistentVolume.Spec.CSI.FSType = ""
	}
	readOnly := func(spec *volumes.Spec) { spec.PersistentVolume.Spec.CSI.ReadOnly = true }
	for name, test := range map[string]struct {
		holds   []byte
		at      int64
		changes []func(*volumes.Spec)
		says    string
	}{
		"a table of partitions": {holds: []byte{0x55, 0xaa}, at: 510, says: "never formatted"},
		"a database":            {holds: []byte("rows"), at: 2 * mebibyte, says: "never formatted"},
		"data at its end":       {holds: []byte("rows"), at: 32*mebibyte - 4096, says: "never formatted"},
		"nothing, to be read":   {changes: []func(*volumes.Spec){readOnly}, says: "isn't formatted"},
		"nothing, for readers":  {changes: []func(*volumes.Spec){forReaders}, says: "isn't formatted"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newDiskNode(t, 32*mebibyte)
			image, err := os.OpenFile(n.image(), os.O_RDWR, 0)
			n.must(err)
			_, err = image.WriteAt(test.holds, test.at)
			n.must(err, image.Close())
			before := n.bytesOfImage()
			err = n.tryPublish("pod", n.spec(append(test.changes, existing)...))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			n.unpublish("pod", n.spec(existing))
			if !bytes.Equal(before, n.bytesOfImage()) {
				t.Error("the disk was written")
			}
		})
	}
	t.Run("nothing at all", func(t *testing.T) {
		n := newDiskNode(t, 32*mebibyte)
		seen := n.publish("pod", n.spec(existing))
		if found, err := n.systems.Probe(t.Context(), n.path()); found != "ext4" || err != nil {
			t.Errorf("it holds %q (%v)", found, err)
		}
		if name := n.inUse(); len(name) != 1 || name[0] != corev1.UniqueVolumeName("kubernetes.io/csi/gce.stowage.dev^projects/p/zones/z/disks/legacy") {
			t.Errorf("in use is %v", name)
		}
		_ = seen
		n.unpublish("pod", n.spec(existing))
		n.mustBeClean()
	})
}
