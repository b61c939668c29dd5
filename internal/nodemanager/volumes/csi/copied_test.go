package csi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/ownership"
)

func TestADirectoryThatIsBeingCopiedIsShownToNoPod(t *testing.T) {
	n := newNode(t, "", imageBytes)
	copied := map[string]bool{n.path: true}
	driver := local.Volumes{Base: filepath.Join(n.dir, "base"), IsCopied: func(path string) bool { return copied[path] }}
	n.restartWith(t, driver, ownership.Owner{})
	spec, pod := n.spec(), n.at(t, "pod")
	spec.PersistentVolume.Spec.CSI.VolumeAttributes["layout"] = "Directory"

	if err := n.plugin.Publish(t.Context(), spec, pod); err == nil || !strings.Contains(err.Error(), "is being copied to another one") {
		t.Errorf("got %v", err)
	}
	table, err := mount.Kernel{}.Table()
	if err != nil || len(table.Below(pod)) > 0 {
		t.Errorf("mounts are left: %v (%v)", table.Below(pod), err)
	}
	delete(copied, n.path)
	if err := n.plugin.Publish(t.Context(), spec, pod); err != nil {
		t.Error(err)
	}
}

func TestAnImageThatIsBeingCopiedIsShownToNoPod(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	image, err := os.Open(n.image())
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	held, err := loopdev.Reserve(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.plugin.Publish(t.Context(), n.spec(), n.at(t, "pod")); err == nil || !strings.Contains(err.Error(), "is being copied") {
		t.Errorf("got %v", err)
	}
	held.Close()
	n.publish(t, "pod", n.spec())
}
