package nfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs/nfstest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// newPlugin is an agent with a kernel that is done at once, and a folder for pods.
func newPlugin(t *testing.T) (Plugin, *nfstest.Kernel, string) {
	t.Helper()
	k, folder := nfstest.NewKernel(), mounttest.TempDir(t)
	return restarted(t, k, folder), k, folder
}

// restarted is a new agent, with the mounts and directories of an earlier one.
func restarted(t *testing.T, k *nfstest.Kernel, folder string) Plugin {
	t.Helper()
	plugin, err := New(k.Shares(), filepath.Join(folder, "nfs"))
	if err != nil {
		t.Fatal(err)
	}
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

func mustBeClean(t *testing.T, k *nfstest.Kernel, folder string) {
	t.Helper()
	stages, err := os.ReadDir(filepath.Join(folder, "nfs"))
	if table := k.Mounts(); err != nil || len(table)+len(stages) > 0 {
		t.Errorf("mounted: %+v; directories: %v (%v)", table, stages, err)
	}
	if _, err := os.Lstat(filepath.Join(folder, "pod-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pod's directory: %v", err)
	}
}

//proves:nfs/claim
func TestAShareIsMountedOnceAndGoesWithItsLastPod(t *testing.T) {
	plugin, k, folder := newPlugin(t)
	spec, first, second := ofPod("/srv", false), filepath.Join(folder, "pod-1"), filepath.Join(folder, "pod-2")
	publish(t, plugin, spec, first, second, first)
	if len(k.Mounts()) != 3 || len(k.Tried) != 1 {
		t.Fatalf("mounted: %+v after %v", k.Mounts(), k.Tried)
	}
	for left, dir := range map[int]string{2: first} {
		if err := plugin.Unpublish(t.Context(), dir); err != nil || len(k.Mounts()) != left {
			t.Fatalf("got %v, and mounted are %+v", err, k.Mounts())
		}
	}
	if err := plugin.Unpublish(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, k, folder)
}

func TestACrashAnywhereLeavesNothingThatTheNextAgentDoesNotFind(t *testing.T) {
	crashes := map[string]func(k *nfstest.Kernel, dir string){
		"before anything is mounted":               func(k *nfstest.Kernel, _ string) { k.Clear() },
		"between the node's mount and the pod's":   func(k *nfstest.Kernel, dir string) { k.Remove(dir) },
		"after both":                               func(*nfstest.Kernel, string) {},
		"after the pod's mount and mount point go": func(k *nfstest.Kernel, dir string) { k.Remove(dir); _ = os.Remove(filepath.Join(dir, mountDir)) },
	}
	for name, crash := range crashes {
		t.Run(name, func(t *testing.T) {
			plugin, k, folder := newPlugin(t)
			dir := filepath.Join(folder, "pod-1")
			publish(t, plugin, ofPod("/srv", false), dir)
			crash(k, dir)

			plugin = restarted(t, k, folder)
			if err := plugin.Unpublish(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			if table := k.Mounts(); len(table) > 0 {
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
	k.Refuse = map[string]error{"4.2": unix.EACCES}
	dir := filepath.Join(folder, "pod-1")
	if err := plugin.Publish(t.Context(), ofPod("/srv", false), dir); !errors.Is(err, unix.EACCES) {
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
	publish(t, plugin, ofPod("/srv", false), dir)
	k.Unmounting, k.Done = remote.ErrDetached, make(chan struct{})

	if err := plugin.Unpublish(t.Context(), dir); !errors.Is(err, remote.ErrDetached) {
		t.Errorf("the first attempt: %v", err)
	}
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Errorf("the second attempt: %v", err)
	}
	mustBeClean(t, k, folder)
	gaveUp, cancel := context.WithCancel(t.Context())
	cancel()
	if err := plugin.Publish(gaveUp, ofPod("/srv", false), dir); !errors.Is(err, nfs.ErrBusy) {
		t.Errorf("the same share: %v", err)
	}
	publish(t, plugin, ofPod("/other", false), filepath.Join(folder, "pod-2"))
	close(k.Done)
	publish(t, plugin, ofPod("/srv", false), dir)
}

//proves:nfs/versions
func TestTheBestVersionThatBothSpeakIsUsed(t *testing.T) {
	other := errors.New("other")
	tests := map[string]struct {
		options []string
		refuse  map[string]error
		tried   []string
		says    string
	}{
		"the newest":                   {nil, nil, []string{"4.2"}, ""},
		"an older one":                 {nil, map[string]error{"4.2": unix.EPROTONOSUPPORT, "4.1": unix.EINVAL}, []string{"4.2", "4.1", "4.0"}, ""},
		"3, where paths differ":        {nil, map[string]error{"4.2": unix.ENOENT, "4.1": unix.ENOENT, "4.0": unix.ENOENT}, []string{"4.2", "4.1", "4.0", "3"}, ""},
		"none but the one asked for":   {[]string{"nfsvers=4.1"}, map[string]error{"4.1": unix.EPROTONOSUPPORT}, []string{"4.1"}, "doesn't speak version 4.1"},
		"none below 4 if 4 is asked":   {[]string{"vers=4"}, map[string]error{"4.2": unix.ENOENT, "4.1": unix.ENOENT, "4.0": unix.ENOENT}, []string{"4.2", "4.1", "4.0"}, "no such directory"},
		"none where no client is":      {nil, map[string]error{"4.2": remote.ErrNoNFSClient}, []string{"4.2"}, "has no NFS client"},
		"none that the server refuses": {nil, map[string]error{"4.2": unix.EACCES}, []string{"4.2"}, "refuses this node"},
		"none of a silent server":      {nil, map[string]error{"4.2": remote.ErrSilent}, []string{"4.2"}, "is it up"},
		"none after another error":     {nil, map[string]error{"4.2": other}, []string{"4.2"}, "other"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plugin, k, folder := newPlugin(t)
			k.Refuse = test.refuse
			err := plugin.Publish(t.Context(), ofObject("/srv", test.options...), filepath.Join(folder, "pod-1"))
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || !slices.Equal(k.Tried, test.tried) {
				t.Errorf("tried %v, got %v", k.Tried, err)
			}
		})
	}
}
