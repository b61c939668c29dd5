package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/local"
	"github.com/stowage-dev/stowage/internal/ownership"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

// node is a node with one directory that an administrator prepared.
type node struct {
	*testing.T
	dir, pods string
	plugin    local.Plugin
	recorded  chan string
}

func newNode(t *testing.T) *node {
	t.Helper()
	mounttest.NeedsRoot(t)
	pods, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(10)
	n := &node{T: t, dir: t.TempDir(), pods: pods, recorded: recorder.Events}
	n.plugin = local.New(mount.Kernel{}).WithOwner(ownership.Owner{Events: recorder})
	t.Cleanup(func() { _ = mount.UnmountBelow(mount.Kernel{}, pods) })
	return n
}

func (n *node) at(pod string) string {
	n.Helper()
	folder := filepath.Join(n.pods, pod, "volumes", volumes.DirName(n.plugin.Name()))
	if err := os.MkdirAll(folder, 0o750); err != nil {
		n.Fatal(err)
	}
	return filepath.Join(folder, "pv")
}

// publish shows the directory to a pod of a group.
func (n *node) publish(pod string, group int64, access mount.Access) {
	n.Helper()
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.Spec.Local = "pv", &corev1.LocalVolumeSource{Path: n.dir}
	user := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{FSGroup: &group}}}
	spec := volumes.Spec{Pod: user, PersistentVolume: volume, Access: access}
	if err := n.plugin.Publish(n.Context(), spec, n.at(pod)); err != nil {
		n.Fatal(err)
	}
	table, err := mount.Kernel{}.Table()
	if err != nil {
		n.Fatal(err)
	}
	if there, err := n.plugin.IsPublished(table, spec, n.at(pod)); err != nil || !there {
		n.Errorf("published is %v (%v)", there, err)
	}
}

func (n *node) unpublish(pod string) {
	n.Helper()
	if err := n.plugin.Unpublish(n.Context(), n.at(pod)); err != nil {
		n.Fatal(err)
	}
	if _, err := os.Lstat(n.at(pod)); !errors.Is(err, os.ErrNotExist) {
		n.Errorf("its directory is still there (%v)", err)
	}
}

func (n *node) mustBelongTo(group uint32) {
	n.Helper()
	var stat unix.Stat_t
	if err := unix.Lstat(n.dir, &stat); err != nil || stat.Gid != group {
		n.Errorf("it belongs to group %d (%v), want %d", stat.Gid, err, group)
	}
}

//proves:local/fsGroup
func TestTheFSGroupOfTheFirstPodIsApplied(t *testing.T) {
	n := newNode(t)
	n.publish("first", 1, mount.ReadWrite)
	n.mustBelongTo(1)
	n.publish("alike", 1, mount.ReadWrite)
	if len(n.recorded) > 0 {
		t.Errorf("recorded was %s", <-n.recorded)
	}
	n.publish("other", 2, mount.ReadWrite)
	n.mustBelongTo(1)
	select {
	case recorded := <-n.recorded:
		if !strings.Contains(recorded, "AlreadyMountedVolume") || !strings.Contains(recorded, "belongs to group 1") {
			t.Errorf("recorded was %s", recorded)
		}
	default:
		t.Error("no event was recorded")
	}
	for _, pod := range []string{"first", "alike", "other"} {
		n.unpublish(pod)
	}
	n.publish("later", 2, mount.ReadWrite)
	n.mustBelongTo(2)
}

//proves:local/fsGroup
func TestNoFSGroupIsAppliedToAReadOnlyMount(t *testing.T) {
	n := newNode(t)
	n.publish("pod", 1, mount.ReadOnly)
	n.mustBelongTo(0)
}

//proves:local/shown
func TestADirectoryThatIsNotThereIsAnError(t *testing.T) {
	n := newNode(t)
	spec := volumes.Spec{PersistentVolume: &corev1.PersistentVolume{}}
	spec.PersistentVolume.Spec.Local = &corev1.LocalVolumeSource{Path: filepath.Join(n.dir, "missing")}
	if err := n.plugin.Publish(t.Context(), spec, n.at("pod")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
