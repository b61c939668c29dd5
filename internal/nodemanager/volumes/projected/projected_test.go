package projected_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/projected"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

//proves:projected/shown
func TestAProjectedVolumeIsShownInMemoryAlone(t *testing.T) {
	mounttest.NeedsRoot(t)
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kernel, dir := mount.Kernel{}, filepath.Join(parent, "access")
	defer func() { _ = mount.UnmountBelow(kernel, parent) }()
	plugin := projected.New(kernel)
	spec := volumes.Spec{
		Volume: corev1.Volume{Name: "access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		Files:  content.Files{"var/token": {Data: []byte("hunter2"), Mode: 0o400}},
	}
	if !plugin.CanHandle(spec) || plugin.CanHandle(volumes.Spec{}) || plugin.Name() != "kubernetes.io/projected" {
		t.Errorf("%s doesn't handle projected volumes alone", plugin.Name())
	}
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(plugin.Path(dir), "var", "token")); err != nil || string(data) != "hunter2" {
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
