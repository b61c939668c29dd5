package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// forGroup lets a pod with an fsGroup use the volume, which one node may use.
func forGroup(group int64) func(*volumes.Spec) {
	return func(spec *volumes.Spec) {
		spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		spec.Pod = &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{FSGroup: &group}}}
	}
}

func forAllNodes(spec *volumes.Spec) {
	spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
}

func asDirectory(spec *volumes.Spec) {
	spec.PersistentVolume.Spec.CSI.VolumeAttributes["layout"] = "Directory"
}

func mustBelongTo(t *testing.T, path string, group uint32) {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		t.Fatal(err)
	}
	if has := stat.Mode&unix.S_ISGID != 0; stat.Gid != group || has != (group != 0) {
		t.Errorf("%s has group %d and mode %o, want group %d", path, stat.Gid, stat.Mode, group)
	}
}

//proves:csi/fsGroup
func TestAVolumeThatOneNodeMayWriteGetsThePodsFSGroup(t *testing.T) {
	tests := map[string]struct {
		changes []func(*volumes.Spec)
		group   uint32
	}{
		"one node":         {[]func(*volumes.Spec){forGroup(4711)}, 4711},
		"all nodes":        {[]func(*volumes.Spec){forGroup(4711), forAllNodes}, 0},
		"only to read":     {[]func(*volumes.Spec){forGroup(4711), reading}, 0},
		"a pod without it": {nil, 0},
	}
	layouts := map[string]func(*volumes.Spec){"image": func(*volumes.Spec) {}, "directory": asDirectory}
	for name, test := range tests {
		for layout, change := range layouts {
			t.Run(name+", "+layout, func(t *testing.T) {
				n := newNode(t, "ext4", imageBytes)
				spec := n.spec(append(test.changes, change)...)
				mustBelongTo(t, n.publish(t, "pod", spec), test.group)
				n.unpublish(t, "pod", spec)
				n.mustBeClean(t)
			})
		}
	}
}

func TestEachKindOfFileSystemGetsTheFSGroup(t *testing.T) {
	for kind, bytes := range map[string]int64{"ext4": imageBytes, "xfs": 320 * mebibyte} {
		t.Run(kind, func(t *testing.T) {
			n := newNode(t, kind, bytes)
			mustBelongTo(t, n.publish(t, "pod", n.spec(forGroup(4711))), 4711)
			n.unpublish(t, "pod", n.spec())
			n.mustBeClean(t)
		})
	}
}

func TestTheLastPodsFSGroupReplacesThatOfTheFirst(t *testing.T) {
	n := newNode(t, "ext4", imageBytes)
	first := n.publish(t, "first", n.spec(forGroup(1)))
	made := filepath.Join(first, "made")
	if err := os.WriteFile(made, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.publish(t, "second", n.spec(forGroup(2)))
	mustBelongTo(t, first, 2)
	var stat unix.Stat_t
	if err := unix.Lstat(made, &stat); err != nil || stat.Gid != 2 || stat.Mode&0o777 != 0o660 {
		t.Errorf("what the first made has group %d and mode %o (%v)", stat.Gid, stat.Mode, err)
	}
	n.unpublish(t, "first", n.spec())
	n.unpublish(t, "second", n.spec())
	n.mustBeClean(t)
}

//proves:csi/fsGroup
func TestADiskGetsThePodsFSGroup(t *testing.T) {
	n := newDiskNode(t, 64*mebibyte)
	spec := n.spec(forGroup(4711))
	n.must(n.plugin.Publish(t.Context(), spec, n.at("pod")))
	mustBelongTo(t, n.plugin.Path(n.at("pod")), 4711)
	n.must(n.plugin.Unpublish(t.Context(), n.at("pod")))
}

// A crash while an fsGroup is applied leaves the directory mounted where no pod sees it.
func TestADirectoryWithAnInterruptedFSGroupIsNotPublished(t *testing.T) {
	n := newNode(t, "", imageBytes)
	spec, earlier := n.spec(forGroup(4711), asDirectory), filepath.Join(n.at(t, "pod"), "given")
	crash := func() {
		source, err := os.Open(n.path)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		if err := errors.Join(os.MkdirAll(earlier, 0o750), n.mounter.Bind(source, earlier, mount.ReadWrite)); err != nil {
			t.Fatal(err)
		}
	}
	crash()
	if there, err := n.plugin.IsPublished(n.table(t), spec, n.at(t, "pod")); there || err != nil {
		t.Errorf("published is %v (%v)", there, err)
	}
	mustBelongTo(t, n.publish(t, "pod", spec), 4711)
	if n.table(t).IsMountPoint(earlier) {
		t.Error("it is still mounted where the fsGroup was applied")
	}
	n.unpublish(t, "pod", spec)
	crash()
	n.unpublish(t, "pod", spec)
	n.mustBeClean(t)
}

func TestADirectoryThatIsBeingCopiedGetsNoFSGroup(t *testing.T) {
	n := newNode(t, "", imageBytes)
	driver := local.Volumes{Base: filepath.Join(n.dir, "base"), IsCopied: func(string) bool { return true }}
	n.restartWith(t, driver, ownership.Owner{})
	if err := n.plugin.Publish(t.Context(), n.spec(forGroup(4711), asDirectory), n.at(t, "pod")); err == nil {
		t.Error("it was published")
	}
	mustBelongTo(t, n.path, 0)
	n.unpublish(t, "pod", n.spec())
	n.mustBeClean(t)
}

// labelled is a kernel that collects SELinux labels, which it does not support.
type labelled struct {
	mount.Kernel
	labels *[]string
}

func (l labelled) FileSystem(system mount.FileSystem, target string) error {
	system.Settings = slices.DeleteFunc(system.Settings, func(setting mount.Setting) bool {
		if setting.Key == "context" {
			*l.labels = append(*l.labels, setting.Value)
		}
		return setting.Key == "context"
	})
	return l.Kernel.FileSystem(system, target)
}

//proves:every/SELinux
func TestAVolumeForOnePodIsMountedWithItsLabel(t *testing.T) {
	for mode, want := range map[corev1.PersistentVolumeAccessMode][]string{
		corev1.ReadWriteOncePod: {"system_u:object_r:container_file_t:s0:c1,c2"}, corev1.ReadWriteOnce: nil,
	} {
		t.Run(string(mode), func(t *testing.T) {
			n := newNode(t, "ext4", imageBytes)
			var labels []string
			n.mounter = labelled{labels: &labels}
			n.restartWith(t, local.Volumes{Base: filepath.Join(n.dir, "base")}, ownership.Owner{SELinux: true})
			spec := n.spec(forGroup(4711))
			spec.Volume.Name = "data"
			spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
			spec.Pod.Spec.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Level: "s0:c1,c2"}
			spec.Pod.Spec.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}}
			n.publish(t, "pod", spec)
			if !slices.Equal(labels, want) {
				t.Errorf("mounted with %q", labels)
			}
			n.unpublish(t, "pod", spec)
			n.mustBeClean(t)
		})
	}
}
