package csi_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	utilexec "k8s.io/utils/exec"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// diskKinds are the ways in which a pod sees a disk.
var diskKinds = map[string]func(*volumes.Spec){"as a file system": func(*volumes.Spec) {}, "as a device": asDevice}

// eachDiskCrash is eachCrash for disks.
func eachDiskCrash(t *testing.T, prepare, work func(*diskNode) error, look func(*diskNode)) {
	t.Helper()
	for _, after := range []bool{false, true} {
		for number, cut := 1, true; cut; number++ {
			n := newDiskNode(t, imageBytes)
			n.must(prepare(n))
			n.mounter = &dying{left: number, after: after}
			n.restart()
			err := work(n)
			if cut = errors.Is(err, errCut); err != nil && !cut {
				t.Fatal(err)
			}
			n.mounter = mount.Kernel{}
			n.restart()
			look(n)
			n.mustBeClean()
		}
	}
}

//proves:csi/crash
func TestADisksPublishThatIsCutOffAnywhereIsFinishedOrUndone(t *testing.T) {
	for name, kind := range diskKinds {
		begin := func(*diskNode) error { return nil }
		publish := func(n *diskNode) error { return n.tryPublish("pod", n.spec(kind)) }
		t.Run(name+" undone", func(t *testing.T) {
			eachDiskCrash(t, begin, publish, func(n *diskNode) { n.unpublish("pod", n.spec(kind)) })
		})
		t.Run(name+" finished", func(t *testing.T) {
			eachDiskCrash(t, begin, publish, func(n *diskNode) {
				if len(n.inUse()) != 1 {
					n.Errorf("in use are %v", n.inUse())
				}
				n.publish("pod", n.spec(kind))
				if there, err := n.isPublished("pod", n.spec(kind)); !there || err != nil {
					n.Errorf("it isn't there (%v)", err)
				}
				n.unpublish("pod", n.spec(kind))
			})
		})
	}
}

func TestADisksUnpublishThatIsCutOffAnywhereIsFinished(t *testing.T) {
	for name, kind := range diskKinds {
		t.Run(name, func(t *testing.T) {
			publish := func(n *diskNode) error { return n.tryPublish("pod", n.spec(kind)) }
			unpublish := func(n *diskNode) error {
				err := n.pluginFor(n.spec(kind)).Unpublish(n.Context(), n.atFor("pod", n.spec(kind)))
				if mounted := len(n.table().Below(n.dir)) > 0; mounted && len(n.inUse()) != 1 {
					n.Error("it is mounted, and doesn't count as in use")
				}
				return err
			}
			eachDiskCrash(t, publish, unpublish, func(n *diskNode) { n.unpublish("pod", n.spec(kind)) })
		})
	}
}

// cutWhileFormatting is an agent that dies while it makes a file system.
type cutWhileFormatting struct {
	utilexec.Interface
	// leave makes what the death leaves on the disk.
	leave func(path string, whole func() error) error
}

func (c cutWhileFormatting) CommandContext(ctx context.Context, name string, arguments ...string) utilexec.Cmd {
	command := c.Interface.CommandContext(ctx, name, arguments...)
	if !strings.HasPrefix(name, "mkfs.") {
		return command
	}
	return cutCommand{Cmd: command, leave: func() error {
		return c.leave(arguments[len(arguments)-1], func() error { _, err := command.CombinedOutput(); return err })
	}}
}

type cutCommand struct {
	utilexec.Cmd
	leave func() error
}

func (c cutCommand) CombinedOutput() ([]byte, error) { return nil, errors.Join(errCut, c.leave()) }

// halves are what a death while a file system is made leaves.
var halves = map[string]func(path string, whole func() error) error{
	"nothing yet":               func(string, func() error) error { return nil },
	"all of it":                 func(_ string, whole func() error) error { return whole() },
	"one without descriptors":   func(path string, whole func() error) error { return errors.Join(whole(), zero(path, 4096, 64<<10)) },
	"one without a super block": func(path string, whole func() error) error { return errors.Join(whole(), zero(path, 1024, 1024)) },
}

func zero(path string, at int64, length int) error {
	disk, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = disk.WriteAt(make([]byte, length), at)
	return errors.Join(err, disk.Sync(), disk.Close())
}

// dieWhileFormatting leaves half a file system on the disk.
func (n *diskNode) dieWhileFormatting(leave func(string, func() error) error) {
	n.Helper()
	n.systems = filesystem.NewFileSystems(cutWhileFormatting{utilexec.New(), leave})
	n.restart()
	if err := n.tryPublish("pod", n.spec()); !errors.Is(err, errCut) {
		n.Fatalf("got %v", err)
	}
	n.systems = systems
	n.restart()
}

func TestAFileSystemThatIsHalfMadeIsMadeAnew(t *testing.T) {
	for name, leave := range halves {
		t.Run(name, func(t *testing.T) {
			n := newDiskNode(t, imageBytes)
			n.dieWhileFormatting(leave)
			seen := n.publish("pod", n.spec())
			n.must(os.WriteFile(filepath.Join(seen, "hello"), []byte("world"), 0o600))
			n.unpublish("pod", n.spec())
			n.mustBeClean()
			text, err := os.ReadFile(filepath.Join(n.publish("pod", n.spec()), "hello"))
			if string(text) != "world" {
				t.Errorf("it holds %q (%v)", text, err)
			}
			n.unpublish("pod", n.spec())
		})
	}
}

func TestNoHalfMadeFileSystemLeavesTheNode(t *testing.T) {
	for name, leave := range halves {
		t.Run(name, func(t *testing.T) {
			n := newDiskNode(t, imageBytes)
			n.dieWhileFormatting(leave)
			n.unpublish("pod", n.spec())
			n.mustBeClean()
			n.must(os.RemoveAll(filepath.Join(n.dir, "agent"))) // another node
			n.restart()
			n.publish("pod", n.spec())
			n.unpublish("pod", n.spec())
			n.mustBeClean()
		})
	}
}

// idOf is the UUID of an ext4.
func idOf(disk []byte) []byte { return disk[1024+104 : 1024+120] }

func TestADiskThatWasElsewhereSinceItWasHalfFormattedIsNotFormatted(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	n.dieWhileFormatting(halves["one without descriptors"])
	// Detached by force, written by another node, and attached again under all its old names.
	n.detach()
	n.must(systems.Remake(t.Context(), n.image(), "ext4", imageBytes))
	before, err := os.ReadFile(n.image())
	n.must(err)
	n.attach()
	seen := n.publish("pod", n.spec(reading))
	after, err := os.ReadFile(n.path())
	if err != nil || !bytes.Equal(idOf(before), idOf(after)) {
		t.Errorf("the file system in %s is another one (%v)", seen, err)
	}
	n.unpublish("pod", n.spec(reading))
	n.mustBeClean()
}

func TestADiskOfAnotherVolumeIsNotFormattedForAnOldNote(t *testing.T) {
	n := newDiskNode(t, imageBytes)
	n.dieWhileFormatting(halves["one without descriptors"])
	before, err := os.ReadFile(n.path())
	n.must(err)
	later := n.spec(func(spec *volumes.Spec) { spec.PersistentVolume.UID = "later" })
	if err := n.tryPublish("pod", later); err == nil {
		t.Error("what can't be known to be half made was mounted")
	}
	if after, err := os.ReadFile(n.path()); err != nil || !bytes.Equal(idOf(before), idOf(after)) {
		t.Errorf("the file system is another one (%v)", err)
	}
	n.unpublish("pod", later)
	n.mustBeClean()
}
