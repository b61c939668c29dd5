package nodemanager

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// mountPoints are the paths at which something is mounted, each once.
func (n *killedNode) mountPoints(t *testing.T) []string {
	t.Helper()
	table, err := mount.Kernel{}.Table()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, point := range table.Below(n.root()) {
		paths = append(paths, point.Path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// eachMountPoint does something, by hand, to each of a pod's mounts in turn, while its
// node manager is down.
func eachMountPoint(t *testing.T, spoil func(path string) error, look func(*testing.T, *killedNode, states)) {
	t.Helper()
	eachKilledVolume(t, func(t *testing.T, n *killedNode) {
		should := n.learn(t)
		n.Version, n.Leaves = 1, false
		n.mustSettle(t, "at the start")
		for _, path := range n.mountPoints(t) {
			n.Leaves = false
			n.mustSettle(t, "before anything is done to "+path)
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			t.Log(path)
			look(t, n, should)
			n.Leaves = true
			n.mustSettle(t, "after something was done to "+path)
			n.mustBe(t, should.empty, "after something was done to "+path)
		}
	})
}

func takeAway(path string) error {
	return unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
}

func TestAVolumeUnmountedByHandWhileTheAgentIsDownIsMountedAgain(t *testing.T) {
	eachMountPoint(t, takeAway, func(t *testing.T, n *killedNode, should states) {
		n.mustSettle(t, "after the unmount")
		n.mustBe(t, should.shown[1], "after the unmount")
	})
}

func TestAPodWithAVolumeUnmountedByHandIsTornDown(t *testing.T) {
	eachMountPoint(t, takeAway, func(*testing.T, *killedNode, states) {})
}

func TestAPodWithAMountByHandOverItsVolumeIsTornDown(t *testing.T) {
	cover := func(path string) error {
		var under unix.Stat_t
		if err := unix.Stat(path, &under); err != nil || under.Mode&unix.S_IFMT != unix.S_IFDIR {
			return err
		}
		return unix.Mount("tmpfs", path, "tmpfs", 0, "size=1m")
	}
	eachMountPoint(t, cover, func(*testing.T, *killedNode, states) {})
}
