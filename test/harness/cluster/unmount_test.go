package cluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
)

func TestALoopDeviceThatAPodSawDoesNotOutliveTheCluster(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: needs root to attach a loop device")
	}
	folder := Folder{t.TempDir()}
	expectDetached(t, filepath.Join(folder.Disks(), "images", "pvc-1", stowagev1alpha1.ImageFile), folder.unmountVolumes)
}

func TestALoopDeviceOfTheCloudDoesNotOutliveTheCluster(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: needs root to attach a loop device")
	}
	folder := Folder{t.TempDir()}
	expectDetached(t, filepath.Join(folder.cloud(), "images", "1.img"), folder.detachDisks)
}

// expectDetached attaches an image, which then is to be detached.
func expectDetached(t *testing.T, path string, detach func(context.Context) error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	image, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	loop, err := loopdev.Attach(t.Context(), image, loopdev.ForBlock)
	if err != nil {
		t.Fatal(err)
	}
	if err := loop.Close(); err != nil {
		t.Fatal(err)
	}
	if err := detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := loopdev.Find(image); left != nil || err != nil {
		t.Errorf("it is still attached: %v (%v)", left, err)
	}
}
