// Package apidatatest is what the tests of projected volume types have in common.
package apidatatest

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// MustMountInMemoryAlone fails unless a type of this name handles volumes of a source and no
// others. The type must mount one with a file as a tmpfs, and unmount it. It needs root.
func MustMountInMemoryAlone(t *testing.T, plugin volumes.Plugin, name string, source corev1.VolumeSource, file string) {
	t.Helper()
	mounttest.NeedsRoot(t)
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kernel, dir := mount.Kernel{}, filepath.Join(parent, "volume")
	defer func() { _ = mount.UnmountBelow(kernel, parent) }()
	spec := volumes.Spec{
		Volume: corev1.Volume{Name: "volume", VolumeSource: source},
		Files:  content.Files{file: {Data: []byte("hunter2"), Mode: 0o400}},
	}
	if !plugin.CanHandle(spec) || plugin.CanHandle(volumes.Spec{}) || plugin.Name() != name {
		t.Errorf("%s doesn't handle its volumes alone", plugin.Name())
	}
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(plugin.Path(dir), file)); err != nil || string(data) != "hunter2" {
		t.Errorf("its file holds %q (%v)", data, err)
	}
	table, err := kernel.Table()
	if at, mounted := table.At(dir); err != nil || !mounted || at.FSType != "tmpfs" {
		t.Errorf("mounted: %+v (%v)", at, err)
	}
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("its directory is still there (%v)", err)
	}
}
