package csi_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// in returns the file that pods write: a file in a file system, or the device.
func in(path string, spec volumes.Spec) string {
	if spec.IsBlock() {
		return path
	}
	return filepath.Join(path, "hello")
}

// writeAt writes the start of a file or device.
func writeAt(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// begins reads the start of a file or device.
func begins(t *testing.T, path string, length int) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text := make([]byte, length)
	if _, err := io.ReadFull(file, text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

//proves:csi/staging
func TestAStagedVolumeIsSeenByAllPodsAndLeavesNothing(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "ext4", imageBytes)
			spec := n.spec(kind)
			for range 2 {
				n.stage(t, spec)
				n.restart(t)
			}
			first := n.show(t, "first", spec)
			if err := writeAt(in(first, spec), "world"); err != nil {
				t.Fatal(err)
			}
			// Beside one that writes, another one only reads.
			reader := n.spec(kind, reading)
			for range 2 {
				n.show(t, "second", reader)
				n.show(t, "first", spec)
			}
			if got := n.access(t, n.target("second")); got != mount.ReadOnly {
				t.Error("the second can write")
			}
			if got := begins(t, in(n.target("second"), spec), 5); got != "world" {
				t.Errorf("the second reads %q", got)
			}
			for _, path := range []string{first, n.staging(), ""} {
				if err := n.local.Check(t.Context(), "pvc-1", path); err != nil {
					t.Errorf("at %s: %v", path, err)
				}
			}
			if err := n.local.Check(t.Context(), "pvc-1", n.target("third")); !errors.Is(err, volumes.ErrNotFound) {
				t.Errorf("where it isn't: %v", err)
			}
			if err := n.local.Unstage(t.Context(), "pvc-1", n.staging()); !errors.Is(err, volumes.ErrInUse) {
				t.Errorf("unstaging it under its pods gave %v", err)
			}
			n.hide(t, "first")
			n.restart(t)
			n.hide(t, "second")
			n.hide(t, "second")
			for range 2 {
				n.unstage(t)
			}
			n.mustBeClean(t)
			n.stage(t, spec)
			if got := begins(t, in(n.show(t, "third", spec), spec), 5); got != "world" {
				t.Errorf("the third reads %q", got)
			}
			n.hide(t, "third")
			n.unstage(t)
			n.mustBeClean(t)
		})
	}
}

//proves:csi/staging
func TestADeviceIsWrittenOnlyWhileAPodHasItThatMay(t *testing.T) {
	n := newKubeletNode(t, "", imageBytes)
	writer, reader := n.spec(asDevice), n.spec(asDevice, reading)
	n.stage(t, writer)
	seen := n.show(t, "reader", reader)
	if err := writeAt(seen, "text"); err == nil {
		t.Error("a pod that only reads wrote")
	}
	if err := writeAt(n.show(t, "writer", writer), "text"); err != nil {
		t.Error(err)
	}
	n.hide(t, "writer")
	if err := writeAt(seen, "more"); err == nil {
		t.Error("when the writer was gone, a pod that only reads wrote")
	}
	n.hide(t, "reader")
	n.unstage(t)
	n.mustBeClean(t)
}

//proves:csi/staging
func TestAVolumeForReadersIsStagedForReading(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "ext4", imageBytes)
			spec := n.spec(kind, onlyRead)
			n.stage(t, spec)
			n.stage(t, spec)
			n.show(t, "pod", spec)
			n.show(t, "pod", spec)
			if got := n.access(t, n.target("pod")); got != mount.ReadOnly {
				t.Error("it can be written")
			}
			if err := n.local.Stage(t.Context(), n.spec(kind), n.staging()); !spec.IsBlock() && !errors.Is(err, volumes.ErrOtherVolume) {
				t.Errorf("staging it to be written gave %v", err)
			}
			n.hide(t, "pod")
			n.unstage(t)
			n.mustBeClean(t)
		})
	}
}

func onePod(spec *volumes.Spec) {
	spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
}

//proves:csi/staging
func TestAVolumeOfOnePodIsNotPublishedToASecond(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "ext4", imageBytes)
			spec := n.spec(kind, onePod)
			n.stage(t, spec)
			for range 2 {
				n.show(t, "first", spec)
			}
			if err := n.local.Publish(t.Context(), spec, n.staging(), n.target("second")); !errors.Is(err, volumes.ErrInUse) {
				t.Errorf("got %v", err)
			}
			n.hide(t, "first")
			n.show(t, "second", spec)
			n.hide(t, "second")
			n.unstage(t)
			n.mustBeClean(t)
		})
	}
}

func TestAnXFSIsStagedWithItsOptions(t *testing.T) {
	n := newKubeletNode(t, "xfs", 320*mebibyte)
	spec := n.spec(mountedWith("noatime", "ro"))
	n.stage(t, spec)
	n.stage(t, spec)
	n.show(t, "pod", n.spec())
	n.show(t, "pod", n.spec())
	if got := n.access(t, n.target("pod")); got != mount.ReadOnly {
		t.Error("it can be written")
	}
	n.hide(t, "pod")
	n.unstage(t)
	n.mustBeClean(t)
}

//proves:csi/staging
func TestAnotherVolumeAtAPathIsRefused(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "ext4", imageBytes)
			spec := n.spec(kind)
			if err := n.local.Publish(t.Context(), spec, n.staging(), n.target("pod")); !errors.Is(err, volumes.ErrNotStaged) {
				t.Errorf("publishing what isn't staged gave %v", err)
			}
			n.stage(t, spec)
			for other, change := range localKinds {
				if other == name {
					continue
				}
				if err := n.local.Stage(t.Context(), n.spec(change), n.staging()); !errors.Is(err, volumes.ErrOtherVolume) {
					t.Errorf("staging it there as %s gave %v", other, err)
				}
			}
			if err := n.local.Stage(t.Context(), spec, filepath.Join(n.dir, "plugins", "other")); !errors.Is(err, volumes.ErrOtherVolume) {
				t.Errorf("staging it elsewhere, too, gave %v", err)
			}
			n.show(t, "pod", spec)
			if err := n.local.Publish(t.Context(), n.spec(kind, reading), n.staging(), n.target("pod")); !errors.Is(err, volumes.ErrOtherVolume) {
				t.Errorf("publishing it for reading where it is written gave %v", err)
			}
			n.hide(t, "pod")
			n.unstage(t)
			n.mustBeClean(t)
		})
	}
}

// twin makes a second volume beside the first, and returns it.
func (n *kubeletNode) twin(t *testing.T, kind func(*volumes.Spec)) volumes.Spec {
	t.Helper()
	second := *n.node
	second.path = filepath.Join(filepath.Dir(n.path), "pvc-2")
	second.makeImage(t, "ext4", imageBytes)
	spec := n.spec(kind)
	spec.PersistentVolume.Name, spec.PersistentVolume.Spec.CSI.VolumeHandle = "pvc-2", "pvc-2"
	spec.PersistentVolume.Spec.CSI.VolumeAttributes["path"] = second.path
	return spec
}

//proves:csi/staging
func TestNoVolumeIsStagedOrPublishedOverAnother(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "ext4", imageBytes)
			spec, twin := n.spec(kind), n.twin(t, kind)
			n.stage(t, spec)
			if err := n.local.Stage(t.Context(), twin, n.staging()); !errors.Is(err, volumes.ErrOtherVolume) {
				t.Errorf("staging got %v", err)
			}
			own := filepath.Join(n.dir, "plugins", "other")
			if err := errors.Join(os.Mkdir(own, 0o750), n.local.Stage(t.Context(), twin, own)); err != nil {
				t.Fatal(err)
			}
			n.show(t, "pod", spec)
			if err := n.local.Publish(t.Context(), twin, own, n.target("pod")); !errors.Is(err, volumes.ErrOtherVolume) {
				t.Errorf("publishing got %v", err)
			}
			if err := n.local.Unstage(t.Context(), "pvc-2", own); err != nil {
				t.Error(err)
			}
			n.hide(t, "pod")
			n.unstage(t)
			n.mustBeClean(t)
		})
	}
}

func TestADirectoryIsNotStagedAsADevice(t *testing.T) {
	n := newKubeletNode(t, "", imageBytes)
	if err := n.local.Stage(t.Context(), n.spec(asDirectory, asDevice), n.staging()); !errors.Is(err, volumes.ErrNotSupported) {
		t.Errorf("got %v", err)
	}
	n.mustBeClean(t)
}

//proves:csi/staging
func TestAnImageThatIsStagedGrows(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "xfs", 320*mebibyte)
			spec := n.spec(kind)
			if _, err := n.local.Grow(t.Context(), "pvc-1", n.staging()); !errors.Is(err, volumes.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			n.stage(t, spec)
			seen := n.show(t, "pod", spec)
			n.resize(t, 640*mebibyte)
			for _, path := range []string{n.staging(), seen} {
				has, err := n.local.Grow(t.Context(), "pvc-1", path)
				if err != nil || has < 640*mebibyte || name != "a directory" && has > 640*mebibyte {
					t.Errorf("it has %d bytes (%v)", has, err)
				}
				n.restart(t)
			}
			if name == "a file system" && roomIn(t, seen) < 500*mebibyte {
				t.Errorf("it has room for %d bytes", roomIn(t, seen))
			}
			n.hide(t, "pod")
			n.unstage(t)
			n.mustBeClean(t)
		})
	}
}

//proves:csi/staging
func TestADirectoryThatIsBeingCopiedIsNotStaged(t *testing.T) {
	n := newKubeletNode(t, "", imageBytes)
	copied := true
	n.driver.IsCopied = func(path string) bool { return copied && path == n.path }
	n.restart(t)
	spec := n.spec(asDirectory)
	if err := n.local.Stage(t.Context(), spec, n.staging()); err == nil || !strings.Contains(err.Error(), "is being copied to another one") {
		t.Errorf("got %v", err)
	}
	if left := n.table(t).Below(n.staging()); len(left) > 0 {
		t.Errorf("mounts are left: %v", left)
	}
	copied = false
	n.stage(t, spec)
	// A copy announces itself before it sees that it can't begin: pods keep what they have.
	copied = true
	if err := n.local.Stage(t.Context(), spec, n.staging()); err == nil || len(n.table(t).Below(n.staging())) != 1 {
		t.Errorf("got %v", err)
	}
	copied = false
	n.unstage(t)
	n.mustBeClean(t)
}

//proves:csi/staging
func TestAnImageThatIsBeingCopiedIsNotStaged(t *testing.T) {
	n := newKubeletNode(t, "ext4", imageBytes)
	image := openImage(t, n)
	held, err := loopdev.Reserve(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.local.Stage(t.Context(), n.spec(), n.staging()); !errors.Is(err, device.ErrReserved) {
		t.Errorf("got %v", err)
	}
	held.Close()
	n.stage(t, n.spec())
	if held, err := loopdev.Reserve(t.Context(), image); !errors.Is(err, device.ErrAttached) {
		held.Close()
		t.Errorf("a copy that begins got %v", err)
	}
	n.unstage(t)
	n.mustBeClean(t)
}

func openImage(t *testing.T, n *kubeletNode) *os.File {
	t.Helper()
	image, err := os.Open(n.image())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	return image
}

//proves:csi/staging
func TestAVolumeThatWasRemovedUnderItsMountIsAbnormal(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "ext4", imageBytes)
			n.stage(t, n.spec(kind))
			n.show(t, "pod", n.spec(kind))
			if err := os.RemoveAll(n.path); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{n.target("pod"), n.staging()} {
				if err := n.local.Check(t.Context(), "pvc-1", path); err == nil || !strings.Contains(err.Error(), "was removed from the disk") {
					t.Errorf("at %s: %v", path, err)
				}
			}
			n.hide(t, "pod")
			n.unstage(t)
			n.makeImage(t, "ext4", imageBytes)
			n.mustBeClean(t)
		})
	}
}

func TestAfterARebootWhatWasStagedIsStagedAnewOrForgotten(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "ext4", imageBytes)
			for _, again := range []bool{true, false} {
				n.stage(t, n.spec(kind))
				n.show(t, "pod", n.spec(kind))
				n.node.clean(t) // all mounts and loop devices go
				n.restart(t)
				if again {
					n.stage(t, n.spec(kind))
					n.show(t, "pod", n.spec(kind))
				}
				n.hide(t, "pod")
				n.unstage(t)
				n.mustBeClean(t)
			}
		})
	}
}

// A pod whose volume was unmounted by hand, but whose containers still have parts of it mounted,
// isn't a second pod.
func TestAVolumeForOnePodIsMountedAgainBesideThatPodsOwnParts(t *testing.T) {
	n := newKubeletNode(t, "ext4", imageBytes)
	spec := n.spec(func(spec *volumes.Spec) {
		spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	})
	n.stage(t, spec)
	in := func(pod, folder string) string {
		at := filepath.Join(n.dir, "pods", pod, folder, "kubernetes.io~csi", "pv", "mount")
		if err := os.MkdirAll(at, 0o750); err != nil {
			t.Fatal(err)
		}
		return at
	}
	source, err := os.Open(n.staging())
	if err != nil {
		t.Fatal(err)
	}
	err = n.mounter.Bind(source, in("first", "volume-subpaths"), mount.ReadWrite)
	if err := errors.Join(err, source.Close()); err != nil {
		t.Fatal(err)
	}
	if err := n.local.Publish(t.Context(), spec, n.staging(), in("second", "volumes")); !errors.Is(err, volumes.ErrInUse) {
		t.Errorf("the second pod got %v", err)
	}
	seen := in("first", "volumes")
	if err := n.local.Publish(t.Context(), spec, n.staging(), seen); err != nil {
		t.Errorf("the first pod got %v", err)
	}
	twice := filepath.Join(filepath.Dir(seen), "again")
	if err := n.local.Publish(t.Context(), spec, n.staging(), twice); !errors.Is(err, volumes.ErrInUse) {
		t.Errorf("at another path of the same pod, it got %v", err)
	}
	if err := mount.UnmountBelow(n.mounter, filepath.Join(n.dir, "pods")); err != nil {
		t.Fatal(err)
	}
	n.unstage(t)
}
