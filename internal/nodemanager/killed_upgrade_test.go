package nodemanager

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/csitest"
)

// earlierVolumes are those that agents of the layout before mounted otherwise, and how.
var earlierVolumes = map[string]func(*testing.T, *killedNode, csitest.Earlier) error{
	"csi local": func(_ *testing.T, n *killedNode, e csitest.Earlier) error {
		e.Path = n.path("base", "directory")
		return e.Directory(n.inPod("volumes", "kubernetes.io~csi", e.Volume))
	},
	"csi image": func(t *testing.T, n *killedNode, e csitest.Earlier) error {
		return e.FileSystem(t.Context(), n.inPod("volumes", "kubernetes.io~csi", e.Volume))
	},
	"csi image as block": func(t *testing.T, n *killedNode, e csitest.Earlier) error {
		at := n.inPod("volumeDevices", "kubernetes.io~csi", e.Volume)
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			return err
		}
		return e.Device(t.Context(), at)
	},
	killedDisk: func(t *testing.T, n *killedNode, e csitest.Earlier) error {
		disk := n.earlierDisk(t, e)
		return errors.Join(disk.FileSystem(n.inPod("volumes", "kubernetes.io~csi", e.Volume)), disk.Disk.Close())
	},
	killedBlockDisk: func(t *testing.T, n *killedNode, e csitest.Earlier) error {
		at := n.inPod("volumeDevices", "kubernetes.io~csi", e.Volume)
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			return err
		}
		disk := n.earlierDisk(t, e)
		return errors.Join(disk.Device(at), disk.Disk.Close())
	},
}

// earlierDisk is the node's disk, open.
func (n *killedNode) earlierDisk(t *testing.T, e csitest.Earlier) csitest.EarlierDisk {
	t.Helper()
	name := n.cloudDisk().Name
	disk, err := n.devices().Await(t.Context(), name, name)
	mustDo(t, err)
	return csitest.EarlierDisk{Root: e.Root, Volume: e.Volume, Handle: name, Disk: disk}
}

// mountEarlier mounts the pod's volume as an agent of the layout before did.
func (n *killedNode) mountEarlier(t *testing.T) {
	t.Helper()
	mustDo(t, os.MkdirAll(n.inPod(), 0o750), earlierVolumes[n.Volume](t, n, csitest.Earlier{
		Root: n.root(), Volume: "pv", Path: n.path("base", "image"),
	}))
}

func eachEarlierVolume(t *testing.T, do func(*testing.T, *killedNode)) {
	mounttest.NeedsRoot(t)
	for name := range earlierVolumes {
		t.Run(name, func(t *testing.T) { do(t, newKilledNode(t, name)) })
	}
}

// idsOf is what the kernel knows the pod's own mounts of the volume by.
func (n *killedNode) idsOf(t *testing.T) map[string]int {
	t.Helper()
	table, err := mount.Kernel{}.Table()
	mustDo(t, err)
	ids := map[string]int{}
	for _, point := range table.Below(n.inPod()) {
		ids[point.Path] = point.ID
	}
	return ids
}

//proves:csi/upgrade
func TestAnAgentThatIsUpgradedUsesOnWhatTheLayoutBeforeMounted(t *testing.T) {
	eachEarlierVolume(t, func(t *testing.T, n *killedNode) {
		should := n.learn(t)
		n.Version, n.Leaves = 1, false
		n.mountEarlier(t)
		before := n.idsOf(t)

		n.mustSettle(t, "upgraded")

		n.mustBe(t, should.shown[1], "upgraded")
		after := n.idsOf(t)
		for path, id := range before {
			if after[path] != id {
				t.Errorf("%s was mounted again", path)
			}
		}
		n.Leaves = true
		n.mustSettle(t, "without the pod")
		n.mustBe(t, should.empty, "without the pod")
	})
}

//proves:csi/upgrade
func TestANodeManagerThatIsKilledWhileItTakesOverLosesAndLeaksNothing(t *testing.T) {
	eachEarlierVolume(t, func(t *testing.T, n *killedNode) {
		should := n.learn(t)
		takeover, teardown := &work{name: "takeover"}, &work{name: "teardown"}
		for step, stride := kills(t); !takeover.over || !teardown.over; step += stride {
			n.Version, n.Leaves = step%2, false
			n.mountEarlier(t)
			when := n.killedAt(t, takeover, step)
			n.Leaves = step%3 == 0
			n.mustSettle(t, when)
			if !n.Leaves {
				n.mustBe(t, should.shown[n.Version], when)
				n.Leaves = true
				n.mustSettle(t, when)
			}
			n.mustBe(t, should.empty, when)

			n.mountEarlier(t)
			when = n.killedAt(t, teardown, step)
			n.mustSettle(t, when)
			n.mustBe(t, should.empty, fmt.Sprint("of the layout before, ", when))
		}
	})
}
