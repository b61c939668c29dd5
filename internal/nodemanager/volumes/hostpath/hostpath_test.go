package hostpath_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
)

func specOf(path string, kind *corev1.HostPathType) volumes.Spec {
	volume := &corev1.PersistentVolume{}
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: path, Type: kind}
	return volumes.Spec{PersistentVolume: volume}
}

func TestAHostPathMustBeADirectoryAndIsMadeOnlyIfItsTypeSaysSo(t *testing.T) {
	host := t.TempDir()
	file, missing := filepath.Join(host, "file"), filepath.Join(host, "missing")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path    string
		kind    *corev1.HostPathType
		refused bool
	}{
		"a directory":                       {host, nil, false},
		"a directory, and says so":          {host, new(corev1.HostPathDirectory), false},
		"a directory, made if need be":      {host, new(corev1.HostPathDirectoryOrCreate), false},
		"nothing":                           {missing, nil, true},
		"nothing, but says directory":       {missing, new(corev1.HostPathDirectory), true},
		"nothing, made":                     {filepath.Join(host, "made", "too"), new(corev1.HostPathDirectoryOrCreate), false},
		"a file":                            {file, nil, true},
		"a file, but says directory":        {file, new(corev1.HostPathDirectory), true},
		"a file, to be made as a directory": {file, new(corev1.HostPathDirectoryOrCreate), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mounter, dir := &mounttest.Fake{}, filepath.Join(t.TempDir(), "volume")
			err := hostpath.New(mounter).Publish(t.Context(), specOf(test.path, test.kind), dir)
			if (err != nil) != test.refused {
				t.Errorf("got %v", err)
			}
			if table, _ := mounter.Table(); table.IsMountPoint(dir) == test.refused {
				t.Errorf("mounted: %+v", table)
			}
		})
	}
	if _, err := os.Lstat(missing); !os.IsNotExist(err) {
		t.Errorf("a directory was made that nobody asked for (%v)", err)
	}
}

func TestOtherTypesOfHostPathAreNotServed(t *testing.T) {
	for _, kind := range []corev1.HostPathType{corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathBlockDev, "Something"} {
		err := hostpath.New(&mounttest.Fake{}).Publish(t.Context(), specOf("/dev/null", &kind), filepath.Join(t.TempDir(), "volume"))
		if !errors.Is(err, volumes.ErrNotSupported) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}
