package csi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

//proves:csi/local-Directory
func TestANodeVolumeIsItsOwnDirectoryBelowTheBaseOrRefused(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	for _, path := range []string{"base/fast/pvc-1/sub/pvc-1", "base/fast/pvc-2", "outside/pvc-1"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"base/link": "../outside", "base/fast/pvc-3": "../../outside/pvc-1", "base/fast/pvc-5": "pvc-2"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "fast", "pvc-6"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		handle, path, layout string
		refused              bool
		kind                 error
	}{
		"its own directory":           {"pvc-1", base + "/fast/pvc-1", "Directory", false, nil},
		"another volume's":            {"pvc-1", base + "/fast/pvc-2", "Directory", true, nil},
		"the folder of all":           {"pvc-1", base + "/fast", "Directory", true, nil},
		"the base":                    {"base", base, "Directory", true, nil},
		"no path":                     {"pvc-1", "", "Directory", true, nil},
		"a relative path":             {"pvc-1", "base/fast/pvc-1", "Directory", true, safepath.ErrOutside},
		"outside the base":            {"pvc-1", dir + "/outside/pvc-1", "Directory", true, safepath.ErrOutside},
		"outside by dots":             {"pvc-1", base + "/../outside/pvc-1", "Directory", true, nil},
		"outside by a symlink":        {"pvc-1", base + "/link/pvc-1", "Directory", true, safepath.ErrOutside},
		"a symlink itself":            {"pvc-3", base + "/fast/pvc-3", "Directory", true, safepath.ErrOutside},
		"a symlink to another volume": {"pvc-5", base + "/fast/pvc-5", "Directory", true, safepath.ErrOutside},
		"a file":                      {"pvc-6", base + "/fast/pvc-6", "Directory", true, nil},
		"not there":                   {"pvc-4", base + "/fast/pvc-4", "Directory", true, os.ErrNotExist},
		"of a layout to come":         {"pvc-1", base + "/fast/pvc-1", "Qcow2", true, volumes.ErrNotSupported},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{}
			volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
				VolumeHandle: test.handle, VolumeAttributes: map[string]string{"path": test.path, "layout": test.layout},
			}
			file, err := local.Volumes{Base: base}.Open(t.Context(), volume)
			if err == nil {
				file.Close()
			}
			if (err != nil) != test.refused || test.kind != nil && !errors.Is(err, test.kind) {
				t.Errorf("got %v", err)
			}
		})
	}
}

//proves:csi/local-Directory
func TestANodeVolumeOnAnotherDiskIsRefused(t *testing.T) {
	base, errOther := t.TempDir(), errors.New("another disk")
	if err := os.Mkdir(filepath.Join(base, "pvc-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	driver := local.Volumes{Base: base, CheckDisk: func(_ context.Context, directory string) error {
		if directory != filepath.Join(base, "pvc-1") {
			t.Errorf("checked %s", directory)
		}
		return errOther
	}}
	for _, layout := range []string{"Directory", "Image"} {
		volume := &corev1.PersistentVolume{}
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
			VolumeHandle: "pvc-1", VolumeAttributes: map[string]string{"path": filepath.Join(base, "pvc-1"), "layout": layout},
		}
		if _, err := driver.Open(t.Context(), volume); !errors.Is(err, errOther) {
			t.Errorf("layout %s gave %v", layout, err)
		}
	}
}
