package emptydir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

func specOf(medium corev1.StorageMedium, size string) volumes.Spec {
	source := &corev1.EmptyDirVolumeSource{Medium: medium}
	if size != "" {
		source.SizeLimit = new(resource.MustParse(size))
	}
	return volumes.Spec{Volume: corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: source}}}
}

// newDir is where a volume is to be.
func newDir(t *testing.T) string {
	t.Helper()
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(parent, "scratch")
}

func mustBePublished(t *testing.T, plugin emptydir.Plugin, mounter mount.Mounter, spec volumes.Spec, dir string, want bool) {
	t.Helper()
	table, err := mounter.Table()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := plugin.IsPublished(table, spec, dir); err != nil || got != want {
		t.Errorf("published is %v (%v), want %v", got, err, want)
	}
}

//proves:emptyDir/disk
func TestAnEmptyDirOnDiskKeepsItsDataUntilItIsUnpublished(t *testing.T) {
	mounttest.NeedsRoot(t) // a published directory is root's
	mounter, dir, spec := &mounttest.Fake{}, newDir(t), specOf("", "")
	plugin := emptydir.New(mounter)
	mustBePublished(t, plugin, mounter, spec, dir, false)
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	mustBePublished(t, plugin, mounter, spec, dir, true)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A pod may close its own directory: that isn't undone.
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := plugin.Publish(t.Context(), spec, dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its mode became %v (%v)", info.Mode(), err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := plugin.Unpublish(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	mustBePublished(t, plugin, mounter, spec, dir, false)
}

//proves:emptyDir/Memory
func TestAnEmptyDirInMemoryIsThereOnlyWhenItIsMounted(t *testing.T) {
	mounttest.NeedsRoot(t)
	mounter, dir, spec := mount.Kernel{}, newDir(t), specOf(corev1.StorageMediumMemory, "1Mi")
	plugin := emptydir.New(mounter)
	// What a crash between making the directory and mounting leaves.
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	mustBePublished(t, plugin, mounter, spec, dir, false)
	for range 2 {
		if err := plugin.Publish(t.Context(), spec, dir); err != nil {
			t.Fatal(err)
		}
	}
	mustBePublished(t, plugin, mounter, spec, dir, true)
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing more than its sizeLimit gave %v", err)
	}
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	mustBePublished(t, plugin, mounter, spec, dir, false)
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("its directory is still there (%v)", err)
	}
}

//proves:emptyDir/disk
func TestWhatWasMountedIntoAnEmptyDirIsUnmountedAndKept(t *testing.T) {
	mounttest.NeedsRoot(t)
	kernel, dir := mount.Kernel{}, newDir(t)
	plugin := emptydir.New(kernel)
	if err := plugin.Publish(t.Context(), specOf("", ""), dir); err != nil {
		t.Fatal(err)
	}
	precious := t.TempDir()
	canary, inside := filepath.Join(precious, "canary"), filepath.Join(dir, "inside")
	for _, err := range []error{os.WriteFile(canary, nil, 0o600), os.Mkdir(inside, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.Open(precious)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if err := kernel.Bind(source, inside, mount.ReadWrite); err != nil {
		t.Fatal(err)
	}
	if err := plugin.Unpublish(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(canary); err != nil {
		t.Error(err)
	}
}

//proves:emptyDir/HugePages
func TestAnUnknownMediumIsNotServed(t *testing.T) {
	plugin := emptydir.New(&mounttest.Fake{})
	for _, medium := range []corev1.StorageMedium{"Tape", "HugePages-large", "HugePagesAndMore"} {
		if err := plugin.Publish(t.Context(), specOf(medium, ""), newDir(t)); !errors.Is(err, volumes.ErrNotSupported) {
			t.Errorf("%s: got %v", medium, err)
		}
	}
}

func TestAFileInItsPlaceIsAnErrorAndStays(t *testing.T) {
	mounter, dir := &mounttest.Fake{}, newDir(t)
	if err := os.WriteFile(dir, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin := emptydir.New(mounter)
	if _, err := plugin.IsPublished(nil, specOf("", ""), dir); err == nil {
		t.Error("it counts as published")
	}
	if plugin.Publish(t.Context(), specOf("", ""), dir) == nil || plugin.Unpublish(t.Context(), dir) == nil {
		t.Error("it isn't an error")
	}
	if content, err := os.ReadFile(dir); err != nil || string(content) != "kept" {
		t.Errorf("it holds %q (%v)", content, err)
	}
}
