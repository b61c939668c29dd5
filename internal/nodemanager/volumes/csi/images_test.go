package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

//proves:csi/local-Image
func TestAnImageIsMountedOnceForAllPodsAndGoesWithTheLast(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	first, second := n.publish(t, "first", n.spec()), n.publish(t, "second", n.spec())
	if err := os.WriteFile(filepath.Join(first, "hello"), []byte("world"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(second, "hello")); err != nil || string(got) != "world" {
		t.Errorf("the other pod reads %q (%v)", got, err)
	}
	loop := n.loop(t)
	n.restart(t)
	n.unpublish(t, "first", n.spec())
	if n.loop(t) != loop || !n.table(t).IsMountPoint(second) {
		t.Error("the other pod lost it")
	}
	n.unpublish(t, "second", n.spec())
	n.mustBeClean(t)
	if got, err := os.ReadFile(filepath.Join(n.publish(t, "third", n.spec()), "hello")); err != nil || string(got) != "world" {
		t.Errorf("a later pod reads %q (%v)", got, err)
	}
	n.unpublish(t, "third", n.spec())
}

//proves:csi/local-Image
func TestAFullImageIsFullForItsPodsAlone(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	seen := n.publish(t, "pod", n.spec())
	defer n.unpublish(t, "pod", n.spec())
	err := os.WriteFile(filepath.Join(seen, "large"), make([]byte, imageBytes), 0o600)
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing more than there is gave %v", err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "beside"), make([]byte, imageBytes), 0o600); err != nil {
		t.Error(err)
	}
}

//proves:persistentVolumeClaim/readOnly
func TestAPodThatOnlyReadsCannotWriteBesideOneThatDoes(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	reader, writer := n.publish(t, "reader", n.spec(reading)), n.publish(t, "writer", n.spec())
	if err := os.WriteFile(filepath.Join(writer, "a"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(reader, "b"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gave %v", err)
	}
	n.unpublish(t, "writer", n.spec())
	n.unpublish(t, "reader", n.spec())
	n.mustBeClean(t)
}

func TestAVolumeForReadersOnlyIsMountedSoForAll(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	spec := n.spec(func(spec *volumes.Spec) { spec.PersistentVolume.Spec.CSI.ReadOnly = true })
	n.publish(t, "pod", spec)
	if n.plugin.CanGrow(n.table(t), spec.PersistentVolume) {
		t.Error("it would be grown")
	}
	if err := os.WriteFile(filepath.Join(n.staged(), "a"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gave %v", err)
	}
	n.unpublish(t, "pod", spec)
	n.mustBeClean(t)
}

//proves:csi/mountOptions
func TestMountOptionsAreAppliedOrRefused(t *testing.T) {
	tests := map[string]struct {
		options []string
		says    string
	}{
		"known ones":              {[]string{"noatime", "commit=30", "data=journal", "defaults"}, ""},
		"another device":          {[]string{"journal_dev=2049"}, "isn't served for ext4"},
		"one that stops the node": {[]string{"errors=panic"}, "isn't served for ext4"},
		"two in one":              {[]string{"noatime,suid"}, "is not one mount option"},
		"one of another type":     {[]string{"largeio"}, "isn't served for ext4"},
		"a value too few":         {[]string{"commit"}, "isn't served for ext4"},
		"one the kernel refuses":  {[]string{"commit=soon"}, "setting option commit=soon of ext4"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "ext4", imageBytes)
			spec := n.spec(mountedWith(test.options...))
			err := n.plugin.Publish(t.Context(), spec, n.at(t, "pod"))
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			n.unpublish(t, "pod", spec)
			n.mustBeClean(t)
		})
	}
}

//proves:csi/local-Image
func TestAnImageIsNeverFormattedToBeMounted(t *testing.T) {
	n := newNode(t, "", imageBytes)
	err := n.plugin.Publish(t.Context(), n.spec(), n.at(t, "pod"))
	if err == nil || !strings.Contains(err.Error(), "has no file system") {
		t.Errorf("got %v", err)
	}
	content, err := os.ReadFile(n.image())
	if err != nil || strings.Trim(string(content), "\x00") != "" {
		t.Errorf("something was written (%v)", err)
	}
	n.unpublish(t, "pod", n.spec())
	n.mustBeClean(t)
}

//proves:csi/vanishes
func TestAnImageThatIsRemovedWhileItIsMountedIsReportedAndCleanedUp(t *testing.T) {
	for name, change := range map[string]func(*volumes.Spec){"a file system": func(*volumes.Spec) {}, "a device": asDevice} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "ext4", imageBytes)
			spec := n.spec(change)
			n.publish(t, "pod", spec)
			kept := filepath.Join(n.dir, "kept")
			if err := errors.Join(os.Link(n.image(), kept), os.Remove(n.image())); err != nil {
				t.Fatal(err)
			}
			there, err := n.pluginFor(spec).IsPublished(n.table(t), spec, n.at(t, "pod"))
			if !there || err == nil || !strings.Contains(err.Error(), "was removed from the disk") {
				t.Errorf("got %v, %v", there, err)
			}
			n.restart(t)
			n.unpublish(t, "pod", spec)
			if err := os.Rename(kept, n.image()); err != nil {
				t.Fatal(err)
			}
			n.mustBeClean(t)
		})
	}
}

func TestAFileSystemThatTheKernelStoppedWritingToIsReported(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	n.publish(t, "pod", n.spec())
	trigger := "/sys/fs/ext4/" + filepath.Base(n.loop(t)) + "/trigger_fs_error"
	if err := os.WriteFile(trigger, []byte("an error made by a test"), 0o200); err != nil {
		t.Skipf("NOT RUN: the kernel lets no test make an error: %v", err)
	}
	there, err := n.plugin.IsPublished(n.table(t), n.spec(), n.at(t, "pod"))
	if !there || err == nil || !strings.Contains(err.Error(), "stopped writing") {
		t.Errorf("got %v, %v", there, err)
	}
	n.unpublish(t, "pod", n.spec())
	n.mustBeClean(t)

	n.publish(t, "next", n.spec())
	if there, err := n.plugin.IsPublished(n.table(t), n.spec(), n.at(t, "next")); !there || err != nil {
		t.Errorf("once it was checked: got %v, %v", there, err)
	}
	n.unpublish(t, "next", n.spec())
}

//proves:csi/vanishes
func TestAnotherImageUnderTheNameOfAVolumeIsRefused(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	n.publish(t, "old", n.spec())
	elsewhere := filepath.Join(n.dir, "base", "moved")
	if err := os.Rename(n.path, elsewhere); err != nil {
		t.Fatal(err)
	}
	n.makeImage(t, "ext4", imageBytes)
	err := n.plugin.Publish(t.Context(), n.spec(), n.at(t, "new"))
	if !errors.Is(err, volumes.ErrOtherVolume) {
		t.Errorf("got %v", err)
	}
	n.unpublish(t, "old", n.spec())
	n.publish(t, "new", n.spec())
	n.unpublish(t, "new", n.spec())
	n.mustBeClean(t)
}

func TestTwoVolumeObjectsOfOneImageHaveItStagedOnce(t *testing.T) {
	for name, change := range kinds {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "ext4", imageBytes)
			spec, second := n.spec(change), n.spec(change)
			second.PersistentVolume.Name = "twin"
			n.publish(t, "pod", spec)
			loop, twin := n.loop(t), filepath.Join(filepath.Dir(n.at(t, "other")), "twin")
			if err := n.pluginFor(spec).Publish(t.Context(), second, twin); err != nil {
				t.Error(err)
			}
			n.unpublish(t, "pod", spec)
			if there, err := n.pluginFor(spec).IsPublished(n.table(t), second, twin); !there || err != nil || n.loop(t) != loop {
				t.Errorf("the other has it: %v (%v)", there, err)
			}
			if err := n.pluginFor(spec).Unpublish(t.Context(), twin); err != nil {
				t.Error(err)
			}
			n.mustBeClean(t)
		})
	}
}

func TestOneImageIsNotADeviceAndAFileSystemAtOnce(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	twin := n.spec(asDevice)
	twin.PersistentVolume.Name = "twin"
	n.publish(t, "pod", n.spec())
	path := filepath.Join(filepath.Dir(n.at(t, "other")), "twin")
	if err := n.devices.Publish(t.Context(), twin, path); !errors.Is(err, volumes.ErrOtherVolume) {
		t.Errorf("got %v", err)
	}
	if err := n.devices.Unpublish(t.Context(), path); err != nil {
		t.Error(err)
	}
	n.unpublish(t, "pod", n.spec())
	n.mustBeClean(t)
}

func TestAVolumeThatIsNotAnImageHasNothingStaged(t *testing.T) {
	n := newNode(t, "", imageBytes)
	spec := n.spec()
	spec.PersistentVolume.Spec.CSI.VolumeAttributes["layout"] = "Directory"
	seen := n.publish(t, "pod", spec)
	if _, err := os.Stat(filepath.Join(seen, "image")); err != nil {
		t.Error(err)
	}
	if n.plugin.CanGrow(n.table(t), spec.PersistentVolume) {
		t.Error("it would be grown")
	}
	n.unpublish(t, "pod", spec)
	n.mustBeClean(t)
}
