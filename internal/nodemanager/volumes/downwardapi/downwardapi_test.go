package downwardapi_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/downwardapi"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

//proves:downwardAPI/shown
func TestWhatAPodAsksOfItselfIsShownInMemoryAlone(t *testing.T) {
	mounttest.NeedsRoot(t)
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kernel, dir := mount.Kernel{}, filepath.Join(parent, "podinfo")
	defer func() { _ = mount.UnmountBelow(kernel, parent) }()
	plugin := downwardapi.New(kernel)
	spec := volumes.Spec{
		Volume: corev1.Volume{Name: "podinfo", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}},
		Files:  content.Files{"labels": {Data: []byte("app=1"), Mode: 0o400}},
	}
	if !plugin.CanHandle(spec) || plugin.CanHandle(volumes.Spec{}) || plugin.Name() != "kubernetes.io/downward-api" {
		t.Errorf("%s doesn't handle downwardAPI volumes alone", plugin.Name())
	}
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(plugin.Path(dir), "labels")); err != nil || string(data) != "app=1" {
		t.Errorf("it shows %q (%v)", data, err)
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
