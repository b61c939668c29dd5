package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/csitest"
)

// earlierKinds are the ways in which pods see local volumes, and how an agent of the layout
// before mounted them.
var earlierKinds = map[string]struct {
	change func(*volumes.Spec)
	mount  func(*testing.T, csitest.Earlier, string) error
}{
	"a directory":   {asDirectory, func(_ *testing.T, e csitest.Earlier, at string) error { return e.Directory(at) }},
	"a file system": {func(*volumes.Spec) {}, func(t *testing.T, e csitest.Earlier, at string) error { return e.FileSystem(t.Context(), at) }},
	"a device":      {asDevice, func(t *testing.T, e csitest.Earlier, at string) error { return e.Device(t.Context(), at) }},
}

// upgraded is a node on which an agent of the previous layout mounted the volume for pods.
func upgraded(t *testing.T, kind string, pods ...string) (*node, volumes.Spec) {
	t.Helper()
	n := newNode(t, "ext4", imageBytes)
	for _, pod := range pods {
		at := csitest.Earlier{Root: n.dir, Volume: "pv", Path: n.path}
		if err := earlierKinds[kind].mount(t, at, n.at(t, pod)); err != nil {
			t.Fatal(err)
		}
	}
	spec := n.spec(earlierKinds[kind].change)
	return n, spec
}

// mountID is what the kernel knows the mount of a pod by.
func (n *node) mountID(t *testing.T, pod string, spec volumes.Spec) int {
	t.Helper()
	at, mounted := n.table(t).At(n.pluginFor(spec).Path(n.at(t, pod)))
	if !mounted {
		t.Fatalf("pod %s has nothing mounted", pod)
	}
	return at.ID
}

func eachEarlierKind(t *testing.T, do func(*testing.T, string)) {
	for kind := range earlierKinds {
		t.Run(kind, func(t *testing.T) { do(t, kind) })
	}
}

//proves:csi/upgrade
func TestWhatTheLayoutBeforeMountedIsTakenOverWhilePodsUseIt(t *testing.T) {
	eachEarlierKind(t, func(t *testing.T, kind string) {
		n, spec := upgraded(t, kind, "first", "second")
		before := []int{n.mountID(t, "first", spec), n.mountID(t, "second", spec)}
		for i, pod := range []string{"first", "second"} {
			if there, err := n.pluginFor(spec).IsPublished(n.table(t), spec, n.at(t, pod)); there || err != nil {
				t.Errorf("before: got %v, %v", there, err)
			}
			n.publish(t, pod, spec)
			if there, err := n.pluginFor(spec).IsPublished(n.table(t), spec, n.at(t, pod)); !there || err != nil {
				t.Errorf("after: got %v, %v", there, err)
			}
			if id := n.mountID(t, pod, spec); id != before[i] {
				t.Errorf("pod %s had mount %d, and has %d", pod, before[i], id)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(n.dir, "images")); len(left) > 0 {
			t.Errorf("still there: %v", left)
		}
		n.unpublish(t, "first", spec)
		n.unpublish(t, "second", spec)
		n.mustBeClean(t)
	})
}

//proves:csi/upgrade
func TestWhatTheLayoutBeforeMountedGoesWithPodsThatWentWhileNoAgentRan(t *testing.T) {
	eachEarlierKind(t, func(t *testing.T, kind string) {
		n, spec := upgraded(t, kind, "first", "second")
		n.unpublish(t, "first", spec)
		n.mountID(t, "second", spec)
		n.unpublish(t, "second", spec)
		n.mustBeClean(t)
	})
}

// Either pod may go first, and the other one may have been taken over or not. The volume stays
// for the other pod, and goes with it.
func TestOfAnEarlierPodAndALaterOneTheLastTakesTheVolumeAway(t *testing.T) {
	orders := map[string][]string{"the earlier one first": {"earlier", "later"}, "the later one first": {"later", "earlier"}}
	for order, pods := range orders {
		t.Run(order, func(t *testing.T) {
			eachEarlierKind(t, func(t *testing.T, kind string) {
				n, spec := upgraded(t, kind, "earlier")
				n.publish(t, "later", spec)
				n.unpublish(t, pods[0], spec)
				n.mountID(t, pods[1], spec)
				n.restart(t)
				n.unpublish(t, pods[1], spec)
				n.mustBeClean(t)
			})
		})
	}
}

// eachEarlierCrash runs work on upgraded nodes, and cuts it off before or after each of its
// changes to the mount table, until work completes. Then it runs look on a restarted agent.
func eachEarlierCrash(t *testing.T, kind string, work func(*node, volumes.Spec) error, look func(*node, volumes.Spec)) {
	t.Helper()
	for _, after := range []bool{false, true} {
		for number, cut := 1, true; cut; number++ {
			n, spec := upgraded(t, kind, "pod", "other")
			n.mounter = &dying{left: number, after: after}
			n.restart(t)
			err := work(n, spec)
			if cut = errors.Is(err, errCut); err != nil && !cut {
				t.Fatal(err)
			}
			n.mounter = mount.Kernel{}
			n.restart(t)
			look(n, spec)
			n.mustBeClean(t)
		}
	}
}

//proves:csi/upgrade
func TestATakeoverThatIsCutOffAnywhereIsFinishedOrUndone(t *testing.T) {
	eachEarlierKind(t, func(t *testing.T, kind string) {
		publish := func(n *node, spec volumes.Spec) error {
			return n.pluginFor(spec).Publish(t.Context(), spec, n.at(t, "pod"))
		}
		eachEarlierCrash(t, kind, publish, func(n *node, spec volumes.Spec) {
			n.publish(t, "pod", spec)
			n.unpublish(t, "other", spec)
			n.mountID(t, "pod", spec)
			n.unpublish(t, "pod", spec)
		})
		eachEarlierCrash(t, kind, publish, func(n *node, spec volumes.Spec) {
			n.unpublish(t, "pod", spec)
			n.mountID(t, "other", spec)
			n.unpublish(t, "other", spec)
		})
	})
}

//proves:csi/upgrade
func TestTheEndOfAnEarlierPodThatIsCutOffAnywhereIsFinished(t *testing.T) {
	eachEarlierKind(t, func(t *testing.T, kind string) {
		unpublish := func(n *node, spec volumes.Spec) error {
			if err := n.pluginFor(spec).Unpublish(t.Context(), n.at(t, "other")); err != nil {
				return err
			}
			return n.pluginFor(spec).Unpublish(t.Context(), n.at(t, "pod"))
		}
		eachEarlierCrash(t, kind, unpublish, func(n *node, spec volumes.Spec) {
			n.unpublish(t, "other", spec)
			n.unpublish(t, "pod", spec)
		})
	})
}

func TestAFileSystemThatWasMountedForReadingOnlyIsTakenOver(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	at := csitest.Earlier{Root: n.dir, Volume: "pv", Path: n.path, SystemAccess: mount.ReadOnly}
	if err := at.FileSystem(t.Context(), n.at(t, "pod")); err != nil {
		t.Fatal(err)
	}
	spec := n.spec(mountedWith("ro"))
	seen := n.publish(t, "pod", spec)
	if err := os.WriteFile(filepath.Join(seen, "a"), nil, 0o600); err == nil {
		t.Error("it can be written")
	}
	n.unpublish(t, "pod", spec)
	n.mustBeClean(t)
}

// A running pod may have changed the modes of its files: its fsGroup is applied before it sees
// them, and never again.
//
//proves:csi/upgrade
func TestAVolumeThatIsTakenOverGetsNoFSGroupAgain(t *testing.T) {
	for _, kind := range []string{"a directory", "a file system"} {
		t.Run(kind, func(t *testing.T) {
			n, spec := upgraded(t, kind, "pod")
			forGroup(4711)(&spec)
			key := filepath.Join(n.plugin.Path(n.at(t, "pod")), "key")
			if err := os.WriteFile(key, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			n.publish(t, "pod", spec)
			if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("it has %v (%v)", info.Mode(), err)
			}
			n.unpublish(t, "pod", spec)
			n.mustBeClean(t)
		})
	}
}
