package csi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	utilexec "k8s.io/utils/exec"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/gcepd"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// kubeletDisk is a node of a cloud whose kubelet has one disk staged and published.
type kubeletDisk struct {
	*diskNode
	staged *gcepd.Driver
}

func newKubeletDisk(t *testing.T, bytes int64) *kubeletDisk {
	t.Helper()
	n := &kubeletDisk{diskNode: newDiskNode(t, bytes)}
	n.begin()
	return n
}

func (n *kubeletDisk) begin() {
	n.Helper()
	n.must(os.MkdirAll(n.staging(), 0o750), os.MkdirAll(filepath.Join(n.dir, "pods"), 0o750))
	n.renew()
}

// renew makes the driver again, as an agent that starts does.
func (n *kubeletDisk) renew() {
	n.Helper()
	var err error
	n.staged, err = gcepd.New(stowagev1alpha1.GCEDriver, gcepd.Options{
		Mounter: n.mounter, Systems: n.systems, Finder: n.finder, Folder: filepath.Join(n.dir, "agent", "csi"),
	})
	n.must(err)
}

func (n *kubeletDisk) staging() string          { return filepath.Join(n.dir, "plugins", "globalmount") }
func (n *kubeletDisk) target(pod string) string { return filepath.Join(n.dir, "pods", pod) }

func (n *kubeletDisk) spec(changes ...func(*volumes.Spec)) volumes.Spec {
	return n.diskNode.spec(append([]func(*volumes.Spec){func(spec *volumes.Spec) {
		spec.PersistentVolume.Name, spec.PersistentVolume.UID = "pvc-1", ""
	}}, changes...)...)
}

func (n *kubeletDisk) stage(spec volumes.Spec) error {
	return n.staged.Stage(n.Context(), spec, n.staging())
}

func (n *kubeletDisk) show(spec volumes.Spec, pod string) error {
	return n.staged.Publish(n.Context(), spec, n.staging(), n.target(pod))
}

func (n *kubeletDisk) hide(pod string) error {
	return n.staged.Unpublish(n.Context(), "pvc-1", n.target(pod))
}

func (n *kubeletDisk) unstage() error { return n.staged.Unstage(n.Context(), "pvc-1", n.staging()) }

func (n *kubeletDisk) mustBeEmpty() {
	n.Helper()
	n.mustBeClean()
	for _, pattern := range []string{"agent/csi/*", "plugins/globalmount/*", "pods/*"} {
		if left, _ := filepath.Glob(filepath.Join(n.dir, pattern)); len(left) > 0 {
			n.Errorf("still there: %v", left)
		}
	}
}

//proves:csi/staging
func TestADiskThatIsStagedIsSeenByAllPodsAndLeavesNothing(t *testing.T) {
	for name, kind := range map[string]func(*volumes.Spec){"ext4": func(*volumes.Spec) {}, "xfs": onXFS, "device": asDevice} {
		t.Run(name, func(t *testing.T) {
			n := newKubeletDisk(t, 320*mebibyte)
			spec := n.spec(kind)
			n.must(n.stage(spec), n.stage(spec))
			n.renew()
			n.must(n.stage(spec), n.show(spec, "first"), writeAt(in(n.target("first"), spec), "world"))
			reader := n.spec(kind, reading)
			reader.Attachment = nil // a kubelet may leave it out
			n.must(n.show(reader, "second"), n.show(reader, "second"), n.show(spec, "first"))
			if point, _ := n.table().At(n.target("second")); point.Access != mount.ReadOnly {
				t.Error("the second can write")
			}
			if got := begins(t, in(n.target("second"), spec), 5); got != "world" {
				t.Errorf("the second reads %q", got)
			}
			for _, path := range []string{"", n.staging(), n.target("first")} {
				n.must(n.staged.Check(t.Context(), "pvc-1", path))
			}
			if err := n.staged.Check(t.Context(), "pvc-1", n.target("third")); !errors.Is(err, volumes.ErrNotFound) {
				t.Errorf("where it isn't: %v", err)
			}
			if err := n.unstage(); !errors.Is(err, volumes.ErrInUse) {
				t.Errorf("unstaging it under its pods gave %v", err)
			}
			if err := n.show(reader, "first"); !errors.Is(err, volumes.ErrOtherVolume) {
				t.Errorf("publishing it for reading where it is written gave %v", err)
			}
			n.must(n.hide("first"))
			n.renew()
			if spec.IsBlock() && writeAt(n.target("second"), "x") == nil {
				t.Error("when the writer was gone, a pod that only reads wrote")
			}
			n.must(n.hide("second"), n.hide("second"), n.unstage(), n.unstage())
			n.mustBeEmpty()
			n.must(n.stage(spec), n.show(spec, "third"))
			if got := begins(t, in(n.target("third"), spec), 5); got != "world" {
				t.Errorf("the third reads %q", got)
			}
			n.must(n.hide("third"), n.unstage())
			n.mustBeEmpty()
		})
	}
}

//proves:csi/staging
func TestADiskIsNotStagedByItsNameAlone(t *testing.T) {
	n := newKubeletDisk(t, imageBytes)
	spec := n.spec(func(spec *volumes.Spec) { spec.Attachment.Serial = "another" })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.staged.Stage(ctx, spec, n.staging()); !errors.Is(err, clouddisk.ErrOtherDisk) {
		t.Errorf("got %v", err)
	}
	spec.Attachment = nil
	if err := n.stage(spec); err == nil || !strings.Contains(err.Error(), "isn't attached") {
		t.Errorf("one that isn't attached gave %v", err)
	}
	if err := n.show(spec, "pod"); !errors.Is(err, volumes.ErrNotStaged) {
		t.Errorf("publishing it gave %v", err)
	}
	n.must(n.unstage())
	n.mustBeEmpty()
}

//proves:csi/staging
func TestAStagedDiskIsNotStagedAsAnythingElse(t *testing.T) {
	for name, kind := range diskKinds {
		t.Run(name, func(t *testing.T) {
			n := newKubeletDisk(t, imageBytes)
			spec := n.spec(kind)
			n.must(n.stage(spec))
			for other, change := range diskKinds {
				if err := n.stage(n.spec(change)); other != name && !errors.Is(err, volumes.ErrOtherVolume) {
					t.Errorf("staging it there as %s gave %v", other, err)
				}
			}
			if err := n.staged.Stage(t.Context(), spec, filepath.Join(n.dir, "elsewhere")); !errors.Is(err, volumes.ErrOtherVolume) {
				t.Errorf("elsewhere, too, gave %v", err)
			}
			twin := n.spec(kind, func(spec *volumes.Spec) {
				spec.PersistentVolume.Name, spec.PersistentVolume.Spec.CSI.VolumeHandle = "twin", "twin"
			})
			if err := n.stage(twin); !errors.Is(err, mount.ErrMounted) {
				t.Errorf("another volume with the disk got %v", err)
			}
			one := n.spec(kind, onePod)
			n.must(n.show(one, "first"), n.show(one, "first"))
			if err := n.show(one, "second"); !errors.Is(err, volumes.ErrInUse) {
				t.Errorf("a second pod of a volume of one got %v", err)
			}
			n.must(n.hide("first"), n.unstage())
			n.mustBeEmpty()
		})
	}
}

//proves:csi/staging
func TestADiskThatIsMountedInAnotherNamespaceIsNotUnstaged(t *testing.T) {
	n := newKubeletDisk(t, imageBytes)
	n.must(n.stage(n.spec()))
	kept, err := os.Open(n.staging())
	n.must(err, mount.Kernel{}.Detach(n.staging())) // an open file keeps the mount
	if err := n.unstage(); !errors.Is(err, mount.ErrMounted) {
		t.Errorf("got %v", err)
	}
	n.must(kept.Close(), n.unstage())
	n.mustBeEmpty()
}

//proves:csi/staging
func TestAStagedDiskGrows(t *testing.T) {
	for name, kind := range map[string]func(*volumes.Spec){"xfs": onXFS, "device": asDevice} {
		t.Run(name, func(t *testing.T) {
			n := newKubeletDisk(t, 320*mebibyte)
			if _, err := n.staged.Grow(t.Context(), "pvc-1", n.staging()); !errors.Is(err, volumes.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			n.must(n.stage(n.spec(kind)), n.show(n.spec(kind), "pod"))
			n.must(os.Truncate(n.image(), 640*mebibyte), n.cloud.Resize(t.Context(), n.disk()))
			for _, path := range []string{n.staging(), n.target("pod")} {
				if has, err := n.staged.Grow(t.Context(), "pvc-1", path); has != 640*mebibyte || err != nil {
					t.Errorf("got %d, %v", has, err)
				}
			}
			if name == "xfs" && roomIn(t, n.target("pod")) < 500*mebibyte {
				t.Error("its file system has not grown")
			}
			n.must(n.hide("pod"), n.unstage())
			n.mustBeEmpty()
		})
	}
}

//proves:csi/staging
func TestAFileSystemThatIsHalfMadeIsMadeAnewWhenItIsStagedAgain(t *testing.T) {
	for name, leave := range halves {
		for _, again := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				n := newKubeletDisk(t, imageBytes)
				n.systems = filesystem.NewFileSystems(cutWhileFormatting{utilexec.New(), leave})
				n.renew()
				if err := n.stage(n.spec()); !errors.Is(err, errCut) {
					t.Fatalf("got %v", err)
				}
				n.systems = systems
				n.renew()
				if !again {
					// No half leaves the node.
					n.must(n.unstage())
					n.must(os.RemoveAll(filepath.Join(n.dir, "agent")))
					n.renew()
				}
				n.must(n.stage(n.spec()), n.show(n.spec(), "pod"), n.hide("pod"), n.unstage())
				n.mustBeEmpty()
			})
		}
	}
}

//proves:csi/staging
func TestACallForADiskThatIsCutOffAnywhereIsFinishedOrUndone(t *testing.T) {
	for name, kind := range diskKinds {
		for which := range 4 {
			for _, after := range []bool{false, true} {
				for number, died := 1, true; died; number++ {
					n := newKubeletDisk(t, imageBytes)
					spec := n.spec(kind)
					calls := []func() error{
						func() error { return n.stage(spec) }, func() error { return n.show(spec, "pod") },
						func() error { return n.hide("pod") }, n.unstage,
					}
					for _, call := range calls[:which] {
						n.must(call())
					}
					n.mounter = &dying{left: number, after: after}
					n.renew()
					err := calls[which]()
					if died = errors.Is(err, errCut); err != nil && !died {
						t.Fatal(err)
					}
					n.mounter = mount.Kernel{}
					n.renew()
					rest := calls[which:]
					if number%2 == 0 {
						rest = calls[2:]
					}
					for _, call := range rest {
						if err := call(); err != nil {
							t.Fatalf("%s, cut in call %d at change %d: %v", name, which, number, err)
						}
					}
					n.mustBeEmpty()
				}
			}
		}
	}
}

//proves:csi/staging
func TestAScsiDiskThatVanishesIsUnstagedAndStagedAgainWhenItIsBack(t *testing.T) {
	for name, kind := range diskKinds {
		t.Run(name, func(t *testing.T) {
			scsi := newScsiNode(t)
			n := &kubeletDisk{diskNode: scsi.diskNode}
			n.begin()
			spec := scsi.scsiSpec(kind, func(spec *volumes.Spec) { spec.PersistentVolume.Name, spec.PersistentVolume.UID = "pvc-1", "" })
			n.must(n.stage(spec), n.show(spec, "pod"))
			used, err := os.Open(n.target("pod"))
			n.must(err)
			scsi.takeAway()
			if err := n.staged.Check(t.Context(), "pvc-1", n.target("pod")); !errors.Is(err, volumes.ErrGone) {
				t.Errorf("got %v", err)
			}
			if err := n.show(spec, "late"); !errors.Is(err, volumes.ErrGone) {
				t.Errorf("publishing it gave %v", err)
			}
			if err := n.unstage(); !errors.Is(err, volumes.ErrInUse) {
				t.Errorf("unstaging it under a pod gave %v", err)
			}
			n.must(n.hide("pod"), n.unstage(), used.Close())
			n.mustBeEmpty()
			scsi.plugBackIn()
			n.must(n.stage(spec), n.show(spec, "pod"))
			scsi.takeAway()
			scsi.plugBackIn()
			// It is another device by now: what is left of the old one goes.
			n.must(n.stage(spec), n.staged.Check(t.Context(), "pvc-1", n.staging()))
			n.must(n.show(spec, "pod"), n.hide("pod"), n.unstage())
			n.mustBeEmpty()
		})
	}
}
