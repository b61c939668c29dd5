package nfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// upgraded is a node of which an agent of the previous layout mounted a volume for a pod.
type upgraded struct {
	*staged
	// shared is where it is mounted for all pods, and pod where the pod has it.
	shared, pod string
}

func newUpgraded(t *testing.T, spec volumes.Spec) *upgraded {
	t.Helper()
	s := newStaged(t)
	share, err := nfs.ShareOf(spec)
	s.must(err)
	u := &upgraded{s, s.at(filepath.Join("nfs", share.Key())), s.at("pods/uid/volumes/kubernetes.io~nfs/pvc-1/mount")}
	s.must(os.MkdirAll(u.shared, 0o750), os.MkdirAll(u.pod, 0o750))
	s.kernel.Add(mount.Point{Device: "0:49", Root: "/", Source: "nfs:/srv", Path: u.shared})
	s.kernel.Add(mount.Point{Device: "0:49", Root: "/", Source: "nfs:/srv", Path: u.pod})
	u.restart()
	return u
}

func (u *upgraded) restart() {
	u.staged.restart()
	u.WithEarlier(u.at("nfs"))
}

// target is where the pod has the volume now.
func (u *upgraded) target() string { return "pods/uid/volumes/kubernetes.io~csi/pvc-1/mount" }

func (u *upgraded) publish(spec volumes.Spec) {
	u.Helper()
	u.must(os.MkdirAll(filepath.Dir(u.at(u.target())), 0o750), u.stage(spec), u.show(spec, u.target()))
}

// mustBeTakenOver fails unless all mounts are of the superblock that the pod had before.
func (u *upgraded) mustBeTakenOver() {
	u.Helper()
	for _, point := range u.kernel.Mounts() {
		if point.Device != "0:49" || point.Path == u.shared {
			u.Errorf("mounted is %+v", point)
		}
	}
	if len(u.kernel.Tried) > 0 {
		u.Errorf("it was mounted again: %v", u.kernel.Tried)
	}
	if _, err := os.Lstat(u.shared); !os.IsNotExist(err) {
		u.Errorf("the mount point of the layout before: %v", err)
	}
}

//proves:csi/upgrade
func TestAShareOfTheLayoutBeforeIsStagedWithoutAnotherMountOfIt(t *testing.T) {
	for name, spec := range map[string]volumes.Spec{"to write": ofBackend("nfs", "/srv", ""), "to read": ofBackend("nfs", "/srv", "ro")} {
		t.Run(name, func(t *testing.T) {
			u := newUpgraded(t, spec)
			u.publish(spec)
			u.mustBeTakenOver()
			if err := u.unstage(); !errors.Is(err, volumes.ErrInUse) {
				t.Errorf("unstaging it under its pod gave %v", err)
			}
			u.must(u.hide(u.target()))
			if err := u.unstage(); !errors.Is(err, volumes.ErrInUse) {
				t.Errorf("unstaging it under the mount of the layout before gave %v", err)
			}
			u.kernel.Remove(u.pod)
			u.must(u.unstage())
			u.mustBeClean()
		})
	}
}

//proves:csi/upgrade
func TestATakeoverOfAShareThatIsCutOffIsFinished(t *testing.T) {
	spec := ofBackend("nfs", "/srv", "")
	for name, finish := range map[string]func(*upgraded){
		"by staging it":   func(u *upgraded) { u.publish(spec) },
		"by unstaging it": func(u *upgraded) { _ = u.unstage() },
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpgraded(t, spec)
			u.must(u.stage(spec), os.Mkdir(u.shared, 0o750))
			// As if the crash had come before the mount in the old folder went.
			u.kernel.Add(mount.Point{Device: "0:49", Root: "/", Source: "nfs:/srv", Path: u.shared})
			u.restart()
			finish(u)
			u.mustBeTakenOver()
		})
	}
}

//proves:csi/upgrade
func TestWhatNoPodHasOrIsAnotherShareIsNotTakenOver(t *testing.T) {
	spec := ofBackend("nfs", "/srv", "")
	changes := map[string]func(*upgraded){
		"no pod has it": func(u *upgraded) { u.kernel.Remove(u.pod) },
		"something else is there": func(u *upgraded) {
			u.kernel.Remove(u.shared)
			u.kernel.Add(mount.Point{Device: "0:7", Root: "/", Path: u.shared})
		},
		"a reboot took it away": func(u *upgraded) { u.kernel.Clear() },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			u := newUpgraded(t, spec)
			change(u)
			before := len(u.kernel.Mounts())
			u.must(u.stage(spec))
			if len(u.kernel.Tried) != 1 || len(u.kernel.Mounts()) != before+1 {
				t.Errorf("mounted: %+v after %v", u.kernel.Mounts(), u.kernel.Tried)
			}
			u.must(u.unstage())
		})
	}
}

//proves:csi/upgrade
func TestAShareOfOnePodIsThatPodsWithWhatTheLayoutBeforeMounted(t *testing.T) {
	spec := ofBackend("nfs", "/srv", "")
	spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	u := newUpgraded(t, spec)
	second := "pods/other/volumes/kubernetes.io~csi/pvc-1/mount"
	u.must(u.stage(spec), os.MkdirAll(u.at(filepath.Dir(second)), 0o750))
	if err := u.show(spec, second); !errors.Is(err, volumes.ErrInUse) {
		t.Errorf("publishing it to a second pod gave %v", err)
	}
	u.publish(spec)
}
