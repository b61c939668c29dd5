package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// calls are a kubelet's calls, in its order.
func (n *kubeletNode) calls(t *testing.T, spec volumes.Spec) []func() error {
	return []func() error{
		func() error { return n.local.Stage(t.Context(), spec, n.staging()) },
		func() error { return n.local.Publish(t.Context(), spec, n.staging(), n.target("pod")) },
		func() error { return n.local.Unpublish(t.Context(), "pvc-1", n.target("pod")) },
		func() error { return n.local.Unstage(t.Context(), "pvc-1", n.staging()) },
	}
}

// cut makes a call with an agent that dies before, or after, its n-th change, and reports whether
// it died.
func (n *kubeletNode) cut(t *testing.T, number int, after bool, call func() error) bool {
	t.Helper()
	n.mounter = &dying{left: number, after: after}
	n.restart(t)
	err := call()
	died := errors.Is(err, errCut)
	if err != nil && !died {
		t.Fatal(err)
	}
	n.mounter = mount.Kernel{}
	n.restart(t)
	return died
}

//proves:csi/staging
func TestACallOfTheKubeletThatIsCutOffAnywhereIsFinishedOrUndone(t *testing.T) {
	for name, kind := range localKinds {
		for which := range 4 {
			for _, after := range []bool{false, true} {
				for number, died := 1, true; died; number++ {
					n := newKubeletNode(t, "ext4", imageBytes)
					calls := n.calls(t, n.spec(kind))
					for _, call := range calls[:which] {
						if err := call(); err != nil {
							t.Fatal(err)
						}
					}
					died = n.cut(t, number, after, calls[which])
					// It is repeated and the rest follows, or all is undone.
					rest := calls[which:]
					if number%2 == 0 {
						rest = calls[2:]
					}
					for _, call := range rest {
						if err := call(); err != nil {
							t.Fatalf("%s, cut in call %d at change %d: %v", name, which, number, err)
						}
					}
					n.mustBeClean(t)
				}
			}
		}
	}
}

func TestTheLoopDeviceOfAFileSystemThatACrashLeftIsFoundByTheRecord(t *testing.T) {
	n := newKubeletNode(t, "ext4", imageBytes)
	n.stage(t, n.spec())
	// Another program has the device open, and the agent dies when the mount is gone.
	held, err := os.Open(n.loop(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := (mount.Kernel{}).Unmount(n.staging()); err != nil {
		t.Fatal(err)
	}
	n.restart(t)
	if err := n.local.Unstage(t.Context(), "pvc-1", n.staging()); !errors.Is(err, device.ErrInUse) {
		t.Errorf("while it is open, got %v", err)
	}
	held.Close()
	n.unstage(t)
	n.mustBeClean(t)
}

//proves:csi/staging
func TestAVolumeThatIsStagedIsNotRemoved(t *testing.T) {
	for name, kind := range localKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletNode(t, "ext4", imageBytes)
			made := store.NewStore(n.driver.Base, systems)
			volume := layout.Volume{Path: filepath.Dir(n.path), Name: "pvc-1", Bytes: imageBytes, Provisioned: true}
			if name != "a directory" {
				volume.Image = &layout.Image{FSType: "ext4"}
			}
			n.stage(t, n.spec(kind))
			if err := made.Remove(t.Context(), volume); err == nil {
				t.Error("it was removed")
			}
			n.show(t, "pod", n.spec(kind))
			if err := made.Remove(t.Context(), volume); err == nil {
				t.Error("it was removed when a pod had it")
			}
			n.hide(t, "pod")
			n.unstage(t)
			n.mustBeClean(t)
			if err := made.Remove(t.Context(), volume); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(n.path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("unstaged, it is still there (%v)", err)
			}
		})
	}
}
