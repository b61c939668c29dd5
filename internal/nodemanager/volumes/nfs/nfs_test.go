package nfs

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// kernel is a Mounter in memory.
type kernel struct {
	mu    sync.Mutex
	table mount.Table
	// refuse is the answer to a version of NFS, and tried are those asked for.
	refuse map[string]error
	tried  []string
	// unmount is how an unmount ends, and done when the kernel is done with it.
	unmount error
	done    chan struct{}
}

func (k *kernel) NFS(_ context.Context, share remote.NFS, target string) error {
	k.tried = append(k.tried, share.Version)
	if err := k.refuse[share.Version]; err != nil {
		return err
	}
	k.add(mount.Point{Device: "0:50", Root: "/", Source: share.Source(), Path: target})
	return nil
}

func (k *kernel) BindMount(_ context.Context, source, target string, access mount.Access) error {
	table, _ := k.Table()
	point, _ := table.At(source)
	point.Path, point.Access = target, access
	k.add(point)
	return nil
}

func (k *kernel) Unbind(_ context.Context, path string) error {
	k.remove(path)
	return nil
}

func (k *kernel) Unmount(_ context.Context, path string) (<-chan struct{}, error) {
	if k.unmount == nil || errors.Is(k.unmount, remote.ErrDetached) {
		k.remove(path)
	}
	return k.done, k.unmount
}

func (k *kernel) Table() (mount.Table, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.table), nil
}

func (k *kernel) add(point mount.Point) {
	k.mu.Lock()
	defer k.mu.Unlock()
	point.ID = len(k.table) + 2
	k.table = append(k.table, point)
}

func (k *kernel) remove(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table = slices.DeleteFunc(k.table, func(point mount.Point) bool { return strings.HasPrefix(point.Path, path) })
}

// newPlugin is an agent with a kernel that is done at once, and a folder for pods.
func newPlugin(t *testing.T) (Plugin, *kernel, string) {
	t.Helper()
	done := make(chan struct{})
	close(done)
	k, folder := &kernel{done: done}, t.TempDir()
	return restarted(t, k, folder), k, folder
}

// restarted is a new agent, with the mounts and directories of an earlier one.
func restarted(t *testing.T, k *kernel, folder string) Plugin {
	t.Helper()
	plugin, err := New(k, filepath.Join(folder, "nfs"))
	if err != nil {
		t.Fatal(err)
	}
	plugin.resolve = func(context.Context, string) (netip.Addr, error) { return netip.MustParseAddr("192.0.2.1"), nil }
	return plugin
}

func publish(t *testing.T, plugin Plugin, spec volumes.Spec, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := plugin.Publish(t.Context(), spec, dir); err != nil {
			t.Fatal(err)
		}
	}
}

func mustBeClean(t *testing.T, k *kernel, folder string) {
	t.Helper()
	stages, err := os.ReadDir(filepath.Join(folder, "nfs"))
	if table, _ := k.Table(); err != nil || len(table)+len(stages) > 0 {
		t.Errorf("mounted: %+v; directories: %v (%v)", table, stages, err)
	}
	if _, err := os.Lstat(filepath.Join(folder, "pod-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pod's directory: %v", err)
	}
}

//proves:nfs/claim
func TestAShareIsMountedOnceAndGoesWithItsLastPod(t *testing.T) {
	plugin, k, folder := newPlugin(t)
	spec, first, second := ofBackend("nfs", "/srv", ""), filepath.Join(folder, "pod-1"), filepath.Join(folder, "pod-2")
	publish(t, plugin, spec, first, second, first)
	if len(k.table) != 3 || len(k.tried) != 1 {
		t.Fatalf("mounted: %+v after %v", k.table, k.tried)
	}
	for left, dir := range map[int]string{2: first} {
		if err := plugin.Unpublish(t.Context(), dir); err != nil || len(k.table) != left {
			t.Fatalf("got %v, and mounted are %+v", err, k.table)
		}
	}
	if err := plugin.Unpublish(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, k, folder)
}

func TestACrashAnywhereLeavesNothingThatTheNextAgentDoesNotFind(t *testing.T) {
	crashes := map[string]func(k *kernel, dir string){
		"before anything is mounted":               func(k *kernel, _ string) { k.table = nil },
		"between the node's mount and the pod's":   func(k *kernel, dir string) { k.remove(dir) },
		"after both":                               func(*kernel, string) {},
		"after the pod's mount and mount point go": func(k *kernel, dir string) { k.remove(dir); _ = os.Remove(filepath.Join(dir, mountDir)) },
	}
	for name, crash := range crashes {
		t.Run(name, func(t *testing.T) {
			plugin, k, folder := newPlugin(t)
			dir := filepath.Join(folder, "pod-1")
			publish(t, plugin, ofBackend("nfs", "/srv", ""), dir)
			crash(k, dir)

			plugin = restarted(t, k, folder)
			if err := plugin.Unpublish(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			if table, _ := k.Table(); len(table) > 0 {
				t.Errorf("mounted: %+v", table)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the pod's directory: %v", err)
			}
		})
	}
}

func TestAMountThatFailedLeavesNoMountPoint(t *testing.T) {
	plugin, k, folder := newPlugin(t)
	k.refuse = map[string]error{"4.2": unix.EACCES}
	dir := filepath.Join(folder, "pod-1")
	if err := plugin.Publish(t.Context(), ofBackend("nfs", "/srv", ""), dir); !errors.Is(err, unix.EACCES) {
		t.Fatal(err)
	}
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, k, folder)
}

func TestAForcedUnmountIsReportedOnceAndItsShareStaysLockedUntilTheKernelIsDone(t *testing.T) {
	plugin, k, folder := newPlugin(t)
	dir := filepath.Join(folder, "pod-1")
	publish(t, plugin, ofBackend("nfs", "/srv", ""), dir)
	k.unmount, k.done = remote.ErrDetached, make(chan struct{})

	if err := plugin.Unpublish(t.Context(), dir); !errors.Is(err, remote.ErrDetached) {
		t.Errorf("the first attempt: %v", err)
	}
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Errorf("the second attempt: %v", err)
	}
	mustBeClean(t, k, folder)
	gaveUp, cancel := context.WithCancel(t.Context())
	cancel()
	if err := plugin.Publish(gaveUp, ofBackend("nfs", "/srv", ""), dir); !errors.Is(err, errBusy) {
		t.Errorf("the same share: %v", err)
	}
	publish(t, plugin, ofBackend("other", "/srv", ""), filepath.Join(folder, "pod-2"))
	close(k.done)
	publish(t, plugin, ofBackend("nfs", "/srv", ""), dir)
}

//proves:nfs/versions
func TestTheBestVersionThatBothSpeakIsUsed(t *testing.T) {
	other := errors.New("other")
	tests := map[string]struct {
		options string
		refuse  map[string]error
		tried   []string
		says    string
	}{
		"the newest":                   {"", nil, []string{"4.2"}, ""},
		"an older one":                 {"", map[string]error{"4.2": unix.EPROTONOSUPPORT, "4.1": unix.EINVAL}, []string{"4.2", "4.1", "4.0"}, ""},
		"3, where paths differ":        {"", map[string]error{"4.2": unix.ENOENT, "4.1": unix.ENOENT, "4.0": unix.ENOENT}, []string{"4.2", "4.1", "4.0", "3"}, ""},
		"none but the one asked for":   {"nfsvers=4.1", map[string]error{"4.1": unix.EPROTONOSUPPORT}, []string{"4.1"}, "doesn't speak version 4.1"},
		"none below 4 if 4 is asked":   {"vers=4", map[string]error{"4.2": unix.ENOENT, "4.1": unix.ENOENT, "4.0": unix.ENOENT}, []string{"4.2", "4.1", "4.0"}, "no such directory"},
		"none where no client is":      {"", map[string]error{"4.2": remote.ErrNoNFSClient}, []string{"4.2"}, "has no NFS client"},
		"none that the server refuses": {"", map[string]error{"4.2": unix.EACCES}, []string{"4.2"}, "refuses this node"},
		"none of a silent server":      {"", map[string]error{"4.2": remote.ErrSilent}, []string{"4.2"}, "is it up"},
		"none after another error":     {"", map[string]error{"4.2": other}, []string{"4.2"}, "other"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plugin, k, folder := newPlugin(t)
			k.refuse = test.refuse
			err := plugin.Publish(t.Context(), ofBackend("nfs", "/srv", test.options), filepath.Join(folder, "pod-1"))
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || !slices.Equal(k.tried, test.tried) {
				t.Errorf("tried %v, got %v", k.tried, err)
			}
		})
	}
}
