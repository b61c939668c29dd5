package emptydir_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
)

const someGroup = 4711

func withGroup(spec volumes.Spec) volumes.Spec {
	spec.Pod = &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(someGroup))}}}
	return spec
}

func withMode(spec volumes.Spec, mode int32) volumes.Spec {
	spec.Volume.EmptyDir.Mode = &mode
	return spec
}

func mustBe(t *testing.T, path string, group, mode uint32) {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		t.Fatal(err)
	}
	if stat.Gid != group || stat.Mode&0o7777 != mode {
		t.Errorf("%s has group %d and mode %o, want %d and %o", path, stat.Gid, stat.Mode&0o7777, group, mode)
	}
}

//proves:emptyDir/fsGroup
func TestAVolumeIsItsPodsFromTheStart(t *testing.T) {
	mounttest.NeedsRoot(t)
	tests := map[string]struct {
		change      func(volumes.Spec) volumes.Spec
		group, mode uint32
	}{
		"as it is":            {func(spec volumes.Spec) volumes.Spec { return spec }, 0, 0o777},
		"with a group":        {withGroup, someGroup, 0o2777},
		"with a mode":         {func(spec volumes.Spec) volumes.Spec { return withMode(spec, 0o1700) }, 0, 0o1700},
		"with group and mode": {func(spec volumes.Spec) volumes.Spec { return withGroup(withMode(spec, 0o700)) }, someGroup, 0o2770},
	}
	for name, test := range tests {
		for _, medium := range []corev1.StorageMedium{corev1.StorageMediumDefault, corev1.StorageMediumMemory} {
			t.Run(name+" "+string(medium), func(t *testing.T) {
				plugin, dir := emptydir.New(mount.Kernel{}), newDir(t)
				if err := plugin.Publish(t.Context(), test.change(specOf(medium, "1Mi")), dir); err != nil {
					t.Fatal(err)
				}
				mustBe(t, dir, test.group, test.mode)
				if err := plugin.Unpublish(t.Context(), dir); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// What a crash leaves before the directory has its name isn't the volume, and is taken
// away by the next attempt, or at the end of the pod.
func TestAVolumeThatWasHalfMadeIsMadeAnew(t *testing.T) {
	mounttest.NeedsRoot(t)
	plugin, dir, spec := emptydir.New(mount.Kernel{}), newDir(t), withGroup(specOf("", ""))
	half := filepath.Join(filepath.Dir(dir), ".new-"+filepath.Base(dir))
	if err := errors.Join(os.Mkdir(half, 0o700), os.WriteFile(filepath.Join(half, "left"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	mustBePublished(t, plugin, mount.Kernel{}, spec, dir, false)
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	mustBe(t, dir, someGroup, 0o2777)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it holds %v (%v)", entries, err)
	}
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{half, dir} {
		if err := plugin.Unpublish(t.Context(), left); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) > 0 {
		t.Errorf("left are %v (%v)", entries, err)
	}
}

func TestAPodsOwnGroupAndModeStay(t *testing.T) {
	mounttest.NeedsRoot(t)
	plugin, dir, spec := emptydir.New(mount.Kernel{}), newDir(t), withGroup(specOf("", ""))
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Lchown(dir, 5, 6), unix.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	mustBe(t, dir, 6, 0o700)
}

//proves:emptyDir/Memory
func TestMemoryIsNeverSwapped(t *testing.T) {
	mounttest.NeedsRoot(t)
	plugin, dir := emptydir.New(mount.Kernel{}), newDir(t)
	if err := plugin.Publish(t.Context(), specOf(corev1.StorageMediumMemory, ""), dir); err != nil {
		t.Fatal(err)
	}
	options := optionsAt(t, dir)
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(options, "noswap") {
		t.Skipf("NOT RUN: this kernel can't keep files in memory from being swapped (Linux 6.4 can): %v", options)
	}
}
