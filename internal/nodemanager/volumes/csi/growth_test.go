package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// sizes of a file system, and what it may keep for itself.
var sizes = map[string]struct{ small, large int64 }{
	"ext4": {imageBytes, 4 * imageBytes},
	"xfs":  {320 * mebibyte, 640 * mebibyte},
}

// mustGrow skips a test of a type that this process may not grow: a silent pass would hide it. To
// grow a mounted ext4, the kernel wants more than root in a container has.
func mustGrow(t *testing.T, fsType string) {
	t.Helper()
	var has [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &has[0])
	if fsType == "ext4" && (err != nil || has[0].Effective&(1<<unix.CAP_SYS_RESOURCE) == 0) {
		t.Skip("NOT RUN: growing a mounted ext4 needs CAP_SYS_RESOURCE")
	}
}

// roomIn returns the size of a mounted file system.
func roomIn(t *testing.T, path string) int64 {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		t.Fatal(err)
	}
	return int64(stat.Blocks) * stat.Frsize
}

//proves:csi/expansion
func TestAFileSystemGrowsWhileItIsMounted(t *testing.T) {
	for fsType, size := range sizes {
		t.Run(fsType, func(t *testing.T) {
			mustGrow(t, fsType)
			n := newNode(t, fsType, size.small)
			seen := n.publish(t, "pod", n.spec())
			kept, err := os.Create(filepath.Join(seen, "kept"))
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			n.resize(t, size.large)
			for range 2 {
				has, err := n.plugin.Grow(t.Context(), n.spec().PersistentVolume)
				if err != nil || has != size.large {
					t.Fatalf("got %d, %v", has, err)
				}
			}
			if room := roomIn(t, seen); room < size.large*7/10 {
				t.Errorf("it has %d of %d bytes", room, size.large)
			}
			if _, err := kept.WriteString("still open"); err != nil {
				t.Error(err)
			}
			kept.Close()
			n.unpublish(t, "pod", n.spec())
			n.mustBeClean(t)
		})
	}
}

func TestAVolumeThatGrewWhileNoPodHadItIsLargeBeforeAPodSeesIt(t *testing.T) {
	for fsType, size := range sizes {
		t.Run(fsType, func(t *testing.T) {
			n := newNode(t, fsType, size.small)
			n.publish(t, "earlier", n.spec())
			n.unpublish(t, "earlier", n.spec())
			n.resize(t, size.large)
			if room := roomIn(t, n.publish(t, "pod", n.spec())); room < size.large*7/10 {
				t.Errorf("it has %d of %d bytes", room, size.large)
			}
			n.unpublish(t, "pod", n.spec())
		})
	}
}

func TestAFileSystemThatCannotGrowIsShownAsItIs(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	n.resize(t, 4*imageBytes)
	n.systems = filesystem.NewFileSystems(withoutGrowth{utilexec.New()})
	n.restart(t)
	if room := roomIn(t, n.publish(t, "pod", n.spec())); room > imageBytes {
		t.Errorf("it has %d bytes", room)
	}
	if _, err := n.plugin.Grow(t.Context(), n.spec().PersistentVolume); !errors.Is(err, device.ErrNoTool) {
		t.Errorf("growing it gave %v", err)
	}
	n.unpublish(t, "pod", n.spec())
	n.mustBeClean(t)
}

// withoutGrowth is a node without the programs that grow file systems.
type withoutGrowth struct{ utilexec.Interface }

func (w withoutGrowth) LookPath(name string) (string, error) {
	if name == "resize2fs" {
		return "", os.ErrNotExist
	}
	return w.Interface.LookPath(name)
}

func TestAFileSystemForReadersOnlyStaysAsItIs(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	n.resize(t, 4*imageBytes)
	spec := n.spec(func(spec *volumes.Spec) { spec.PersistentVolume.Spec.CSI.ReadOnly = true })
	if room := roomIn(t, n.publish(t, "pod", spec)); room > imageBytes {
		t.Errorf("it has %d bytes", room)
	}
	n.unpublish(t, "pod", spec)
}

//proves:csi/expansion
func TestADeviceGrowsWhileAPodHasIt(t *testing.T) {
	n := newNode(t, "", imageBytes)
	spec := n.spec(asDevice)
	seen := n.publish(t, "pod", spec)
	n.resize(t, 2*imageBytes)
	if has, err := n.devices.Grow(t.Context(), spec.PersistentVolume); err != nil || has != 2*imageBytes {
		t.Errorf("got %d, %v", has, err)
	}
	shown, err := os.Open(seen)
	if err != nil {
		t.Fatal(err)
	}
	if end, err := shown.Seek(0, 2); err != nil || end != 2*imageBytes {
		t.Errorf("it has %d bytes (%v)", end, err)
	}
	shown.Close()
	n.unpublish(t, "pod", spec)
	n.mustBeClean(t)
}
