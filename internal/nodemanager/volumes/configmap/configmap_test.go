package configmap_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/configmap"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

//proves:configMap/shown
func TestAConfigMapIsWrittenToDisk(t *testing.T) {
	mounter, dir := &mounttest.Fake{}, filepath.Join(t.TempDir(), "settings")
	plugin := configmap.New(mounter)
	spec := volumes.Spec{
		Volume: corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		Files:  content.Files{"app.conf": {Data: []byte("debug"), Mode: 0o644}},
	}
	if !plugin.CanHandle(spec) || plugin.CanHandle(volumes.Spec{}) || plugin.Name() != "kubernetes.io/configmap" {
		t.Errorf("%s doesn't handle configMap volumes alone", plugin.Name())
	}
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(plugin.Path(dir), "app.conf")); err != nil || string(data) != "debug" {
		t.Errorf("it shows %q (%v)", data, err)
	}
	if table, err := mounter.Table(); err != nil || len(table) > 0 {
		t.Errorf("mounted: %+v (%v)", table, err)
	}
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("its directory is still there (%v)", err)
	}
}
