package secret_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/secret"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

//proves:secret/shown
func TestASecretIsShownInMemoryAlone(t *testing.T) {
	mounttest.NeedsRoot(t)
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kernel, dir := mount.Kernel{}, filepath.Join(parent, "certificate")
	defer func() { _ = mount.UnmountBelow(kernel, parent) }()
	plugin := secret.New(kernel)
	spec := volumes.Spec{
		Volume: corev1.Volume{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
		Files:  content.Files{"tls.key": {Data: []byte("hunter2"), Mode: 0o400}},
	}
	if !plugin.CanHandle(spec) || plugin.CanHandle(volumes.Spec{}) || plugin.Name() != "kubernetes.io/secret" {
		t.Errorf("%s doesn't handle secret volumes alone", plugin.Name())
	}
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(plugin.Path(dir), "tls.key")); err != nil || string(data) != "hunter2" {
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
