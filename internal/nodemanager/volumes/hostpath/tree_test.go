package hostpath_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
)

// newSharedHost is a directory in which something is mounted, and whose mounts are
// shared, as those of hosts are.
func newSharedHost(t *testing.T) (host, inner string) {
	t.Helper()
	host = tempDir(t)
	mounttest.Tmpfs(t, host)
	if err := unix.Mount("", host, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	inner = filepath.Join(host, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	mounttest.Tmpfs(t, inner)
	if err := os.WriteFile(filepath.Join(inner, "file"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	return host, inner
}

//proves:hostPath/mounts
func TestADirectoryIsMountedWithItsMountsWhichStayWhenThePodIsGone(t *testing.T) {
	mounttest.NeedsRoot(t)
	host, inner := newSharedHost(t)
	plugin, dir := newPlugin(t)

	if err := plugin.Publish(t.Context(), ofPod(host, corev1.HostPathDirectory), dir); err != nil {
		t.Fatal(err)
	}
	mustBeSame(t, filepath.Join(dir, "inner", "file"), filepath.Join(inner, "file"))

	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	mustNotExist(t, dir)
	if content, err := os.ReadFile(filepath.Join(inner, "file")); err != nil || string(content) != "hello" {
		t.Errorf("what is mounted in the host's directory holds %q (%v)", content, err)
	}
}

//proves:hostPath/readOnly
func TestAReadOnlyVolumeIsReadOnlyWithTheMountsInsideIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	host, _ := newSharedHost(t)
	plugin, dir := newPlugin(t)
	spec := ofObject(host, corev1.HostPathDirectory)
	spec.Access = mount.ReadOnly

	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	for _, written := range []string{dir, filepath.Join(dir, "inner")} {
		if err := os.WriteFile(filepath.Join(written, "new"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("writing to %s gave %v", written, err)
		}
	}
}

//proves:hostPath/mounts
func TestPodsThatHaveTheWholeNodeDoNotHaveEachOthersVolumes(t *testing.T) {
	mounttest.NeedsRoot(t)
	plugin, agent, other := newAgentWithAPod(t)
	first, second := filepath.Join(agent, "first"), filepath.Join(agent, "second")

	publishEach(t, plugin, "/", first, second)

	mustBeSame(t, second, "/")
	table := tableOf(t)
	if mounted := table.Below(filepath.Join(second, agent)); len(mounted) > 0 || !table.IsMountPoint(filepath.Join(second, "proc")) {
		t.Errorf("the pod has %+v, and of the node %+v", mounted, table.Below(second))
	}
	unpublishEach(t, plugin, first, second)
	if table := tableOf(t); !table.IsMountPoint(other) || !table.IsMountPoint("/proc") {
		t.Error("mounts of the node went with the pods'")
	}
}

func TestPodsThatHaveTheAgentsDirectoryDoNotHaveOtherPodsVolumes(t *testing.T) {
	mounttest.NeedsRoot(t)
	plugin, agent, other := newAgentWithAPod(t)
	dir := filepath.Join(agent, "pod")

	publishEach(t, plugin, agent, dir)

	mustBeSame(t, dir, agent)
	if mounted := tableOf(t).Below(dir); len(mounted) != 1 {
		t.Errorf("the pod has %+v", mounted)
	}
	unpublishEach(t, plugin, dir)
	if !tableOf(t).IsMountPoint(other) {
		t.Error("the other pod's volume is gone")
	}
}

// newAgentWithAPod is the volume type of an agent that knows its own directory by a
// symlink, and has another volume of a pod mounted there.
func newAgentWithAPod(t *testing.T) (plugin hostpath.Plugin, agent, other string) {
	t.Helper()
	_, dir := newPlugin(t)
	agent = filepath.Dir(dir)
	other = filepath.Join(agent, "other pod")
	link := filepath.Join(t.TempDir(), "agent")
	if err := errors.Join(os.Mkdir(other, 0o755), os.Symlink(agent, link)); err != nil {
		t.Fatal(err)
	}
	mounttest.Tmpfs(t, other)
	return hostpath.New(kernel, link), agent, other
}

func publishEach(t *testing.T, plugin hostpath.Plugin, path string, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := plugin.Publish(t.Context(), ofPod(path, corev1.HostPathDirectory), dir); err != nil {
			t.Fatal(err)
		}
	}
}

func unpublishEach(t *testing.T, plugin hostpath.Plugin, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := plugin.Unpublish(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		mustNotExist(t, dir)
	}
}

func tableOf(t *testing.T) mount.Table {
	t.Helper()
	table, err := kernel.Table()
	if err != nil {
		t.Fatal(err)
	}
	return table
}
