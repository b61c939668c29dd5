package nfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs/nfstest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// staged is a node whose kubelet has a volume staged and published.
type staged struct {
	*testing.T
	*nfs.Driver
	kernel *nfstest.Kernel
	folder string
}

func newStaged(t *testing.T) *staged {
	t.Helper()
	s := &staged{T: t, kernel: nfstest.NewKernel(), folder: mounttest.TempDir(t)}
	s.must(os.Mkdir(s.at("globalmount"), 0o750))
	s.restart()
	return s
}

// restart makes the driver again, as an agent that starts does.
func (s *staged) restart() {
	s.Helper()
	var err error
	s.Driver, err = nfs.New(s.kernel.Shares(), s.at("agent"))
	s.must(err)
}

func (s *staged) must(errs ...error) {
	s.Helper()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
}

func (s *staged) at(name string) string { return filepath.Join(s.folder, name) }

func (s *staged) stage(spec volumes.Spec) error {
	return s.Stage(s.Context(), spec, s.at("globalmount"))
}

func (s *staged) show(spec volumes.Spec, pod string) error {
	return s.Publish(s.Context(), spec, s.at("globalmount"), s.at(pod))
}

func (s *staged) hide(pod string) error { return s.Unpublish(s.Context(), "pvc-1", s.at(pod)) }
func (s *staged) unstage() error        { return s.Unstage(s.Context(), "pvc-1", s.at("globalmount")) }

func (s *staged) mustBeClean() {
	s.Helper()
	if table := s.kernel.Mounts(); len(table) > 0 {
		s.Errorf("mounted: %+v", table)
	}
	for _, pattern := range []string{"agent/*", "globalmount/*", "pod-*"} {
		if left, _ := filepath.Glob(s.at(pattern)); len(left) > 0 {
			s.Errorf("still there: %v", left)
		}
	}
}

func toRead(spec volumes.Spec) volumes.Spec {
	spec.Access = mount.ReadOnly
	return spec
}

//proves:nfs/staging
func TestAStagedShareIsBoundForEachPodAndLeavesNothing(t *testing.T) {
	s := newStaged(t)
	spec := ofBackend("nfs", "/srv", "")
	for range 2 {
		s.must(s.stage(spec))
		s.restart()
		s.must(s.show(spec, "pod-1"), s.show(toRead(spec), "pod-2"))
	}
	if len(s.kernel.Mounts()) != 3 || len(s.kernel.Tried) != 1 {
		t.Errorf("mounted: %+v after %v", s.kernel.Mounts(), s.kernel.Tried)
	}
	if point, _ := s.kernel.Mounts().At(s.at("pod-2")); point.Access != mount.ReadOnly {
		t.Error("the pod that only reads can write")
	}
	for _, path := range []string{"", s.at("globalmount"), s.at("pod-1")} {
		s.must(s.Check(t.Context(), "pvc-1", path))
	}
	if err := s.Check(t.Context(), "pvc-1", s.at("pod-3")); !errors.Is(err, volumes.ErrNotFound) {
		t.Errorf("where it isn't: %v", err)
	}
	if err := s.unstage(); !errors.Is(err, volumes.ErrInUse) {
		t.Errorf("unstaging it under its pods gave %v", err)
	}
	s.must(s.hide("pod-1"), s.hide("pod-2"), s.hide("pod-2"), s.unstage(), s.unstage())
	s.mustBeClean()
	if err := s.Check(t.Context(), "pvc-1", ""); !errors.Is(err, volumes.ErrNotFound) {
		t.Errorf("when it is gone: %v", err)
	}
}

//proves:nfs/staging
func TestAShareThatIsOnlyReadIsStagedSo(t *testing.T) {
	for name, spec := range map[string]volumes.Spec{"by its options": ofBackend("nfs", "/srv", "ro"), "by its mode": toRead(ofBackend("nfs", "/srv", ""))} {
		t.Run(name, func(t *testing.T) {
			s := newStaged(t)
			s.must(s.stage(spec), s.show(spec, "pod-1"), s.show(spec, "pod-1"))
			for _, at := range []string{"globalmount", "pod-1"} {
				if point, _ := s.kernel.Mounts().At(s.at(at)); point.Access != mount.ReadOnly {
					t.Errorf("it can be written at %s", at)
				}
			}
		})
	}
}

//proves:nfs/staging
func TestAnotherShareAtAPathIsAnotherVolume(t *testing.T) {
	s := newStaged(t)
	spec := ofBackend("nfs", "/srv", "")
	if err := s.show(spec, "pod-1"); !errors.Is(err, volumes.ErrNotStaged) {
		t.Errorf("publishing what isn't staged gave %v", err)
	}
	s.must(s.stage(spec))
	twin := ofBackend("nfs", "/srv", "")
	twin.PersistentVolume.Name = "pvc-2"
	others := map[string]volumes.Spec{"another directory": ofBackend("nfs", "/other", ""), "for reading": ofBackend("nfs", "/srv", "ro"), "another volume": twin}
	for name, other := range others {
		if err := s.stage(other); !errors.Is(err, volumes.ErrOtherVolume) {
			t.Errorf("%s gave %v", name, err)
		}
	}
	if err := s.Stage(t.Context(), spec, s.at("elsewhere")); !errors.Is(err, volumes.ErrOtherVolume) {
		t.Errorf("elsewhere, too, gave %v", err)
	}
	if err := s.show(twin, "pod-1"); !errors.Is(err, volumes.ErrNotStaged) {
		t.Errorf("publishing another volume from there gave %v", err)
	}
	s.must(s.show(spec, "pod-1"))
	if err := s.show(toRead(spec), "pod-1"); !errors.Is(err, volumes.ErrOtherVolume) {
		t.Errorf("publishing it for reading where it is written gave %v", err)
	}
	s.must(s.hide("pod-1"), s.unstage())
	s.mustBeClean()
}

//proves:nfs/mountOptions
func TestOptionsThatWereChangedHoldFromWhenTheShareIsStagedAnew(t *testing.T) {
	s := newStaged(t)
	spec, changed := ofBackend("nfs", "/srv", ""), ofBackend("nfs", "/srv", "noatime")
	s.must(s.stage(spec), s.show(spec, "pod-1"))
	s.restart()
	s.must(s.stage(changed), s.show(changed, "pod-1"), s.show(changed, "pod-2"))
	if len(s.kernel.Tried) != 1 {
		t.Errorf("under its pods it was mounted again: %v", s.kernel.Tried)
	}
	s.must(s.hide("pod-1"), s.hide("pod-2"), s.unstage())
	s.must(s.stage(changed), s.unstage())
	if len(s.kernel.Tried) != 2 {
		t.Errorf("mounted: %v", s.kernel.Tried)
	}
	s.mustBeClean()
}

func TestAnInvalidShareIsNotStaged(t *testing.T) {
	s := newStaged(t)
	block := ofBackend("nfs", "/srv", "")
	block.PersistentVolume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	for _, spec := range []volumes.Spec{block, ofBackend("", "/srv", ""), ofBackend("nfs", "/srv", "addr=192.0.2.9")} {
		if err := s.stage(spec); !errors.Is(err, volumes.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}
	s.mustBeClean()
}

func TestAShareOfOnePodIsNotPublishedToASecond(t *testing.T) {
	s := newStaged(t)
	spec := ofBackend("nfs", "/srv", "")
	spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	s.must(s.stage(spec), s.show(spec, "pod-1"), s.show(spec, "pod-1"))
	if err := s.show(spec, "pod-2"); !errors.Is(err, volumes.ErrInUse) {
		t.Errorf("got %v", err)
	}
	s.must(s.hide("pod-1"), s.show(spec, "pod-2"))
}

// A container runtime that isn't a kubelet may publish a volume twice for one pod.
func TestAShareOfOnePodIsNotPublishedAtASecondPathOfThatPod(t *testing.T) {
	s := newStaged(t)
	spec := ofBackend("nfs", "/srv", "")
	spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	first, second := "pods/uid/volumes/kubernetes.io~csi/first/mount", "pods/uid/volumes/kubernetes.io~csi/second/mount"
	for _, target := range []string{first, second} {
		s.must(os.MkdirAll(s.at(filepath.Dir(target)), 0o750))
	}
	s.must(s.stage(spec), s.show(spec, first))
	if err := s.show(spec, second); !errors.Is(err, volumes.ErrInUse) {
		t.Errorf("got %v", err)
	}
}

//proves:nfs/staging
func TestAHangingServerIsReportedOnceAndItsPathStaysLockedUntilTheKernelIsDone(t *testing.T) {
	s := newStaged(t)
	spec := ofBackend("nfs", "/srv", "")
	s.must(s.stage(spec), s.show(spec, "pod-1"), s.hide("pod-1"))
	s.kernel.Unmounting, s.kernel.Done = remote.ErrDetached, make(chan struct{})
	if err := s.unstage(); !errors.Is(err, remote.ErrDetached) {
		t.Errorf("the first attempt: %v", err)
	}
	gaveUp, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stage(gaveUp, spec, s.at("globalmount")); !errors.Is(err, nfs.ErrBusy) {
		t.Errorf("staging it again: %v", err)
	}
	s.must(s.unstage())
	close(s.kernel.Done)
	s.mustBeClean()
	s.must(s.stage(spec))
}

//proves:nfs/staging
func TestACrashOrARebootAtAnyStepOfStagingIsMadeGood(t *testing.T) {
	spec := ofBackend("nfs", "/srv", "")
	crashes := map[string]func(*staged){
		"before it is mounted": func(s *staged) { s.kernel.Clear() },
		"after it is mounted":  func(s *staged) { s.kernel.Remove(s.at("pod-1")) },
		"after it is bound":    func(*staged) {},
		"with a mount point":   func(s *staged) { s.kernel.Clear(); s.must(os.MkdirAll(s.at("pod-1"), 0o750)) },
		"after the record's end": func(s *staged) {
			s.kernel.Clear()
			s.must(os.RemoveAll(s.at("agent")), os.Mkdir(s.at("agent"), 0o700))
		},
	}
	for name, crash := range crashes {
		for _, again := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				s := newStaged(t)
				s.must(s.stage(spec), s.show(spec, "pod-1"))
				crash(s)
				s.restart()
				if again {
					s.must(s.stage(spec), s.show(spec, "pod-1"))
				}
				s.must(s.hide("pod-1"), s.unstage())
				s.mustBeClean()
			})
		}
	}
}

func TestAMountThatTheServerRefusesIsExplained(t *testing.T) {
	s := newStaged(t)
	s.kernel.Refuse = map[string]error{"4.2": unix.EACCES}
	if err := s.stage(ofBackend("nfs", "/srv", "")); !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "refuses this node") {
		t.Errorf("got %v", err)
	}
	s.must(s.unstage())
	s.mustBeClean()
}
