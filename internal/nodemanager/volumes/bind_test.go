package volumes_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

// dirs is a fresh directory with two sources of volumes.
func dirs(t *testing.T) (base string, source, other *os.File) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	for _, name := range []string{"source", "other"} {
		path := filepath.Join(base, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		files = append(files, file)
	}
	return base, files[0], files[1]
}

func TestABindMountIsMadeOnceAndUnmountedWithItsDirectories(t *testing.T) {
	mounttest.NeedsRoot(t)
	kernel := mount.Kernel{}
	base, source, other := dirs(t)
	dir := filepath.Join(base, "pods", "volume")
	target := filepath.Join(dir, "mount")
	for range 2 {
		if err := volumes.Bind(kernel, source, target, mount.ReadWrite); err != nil {
			t.Fatal(err)
		}
	}
	if table, err := kernel.Table(); err != nil || len(table.Below(base)) != 1 {
		t.Errorf("mounted: %+v (%v)", table.Below(base), err)
	}
	if err := volumes.Bind(kernel, other, target, mount.ReadWrite); !errors.Is(err, mount.ErrMounted) {
		t.Errorf("mounting another directory over it gave %v", err)
	}
	for range 2 {
		if err := volumes.Unbind(kernel, target, dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there (%v)", err)
	}
	if _, err := os.Lstat(filepath.Dir(dir)); err != nil {
		t.Errorf("its parent is gone: %v", err)
	}
}

func TestWhatLiesInAMountPointIsNeverRemoved(t *testing.T) {
	base, _, _ := dirs(t)
	dir := filepath.Join(base, "volume")
	kept := filepath.Join(dir, "mount", "kept")
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{filepath.Dir(kept), kept} {
		if err := volumes.Unbind(&mounttest.Fake{}, target, dir); err == nil {
			t.Errorf("removing %s succeeded", target)
		}
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Error(err)
	}
}

func TestAMountThatCannotBeUnmountedKeepsItsDirectory(t *testing.T) {
	base, source, _ := dirs(t)
	mounter, target := &mounttest.Fake{}, filepath.Join(base, "volume")
	if err := volumes.Bind(mounter, source, target, mount.ReadOnly); err != nil {
		t.Fatal(err)
	}
	busy := errors.New("busy")
	mounter.Refuse(target, busy)
	if err := volumes.Unbind(mounter, target, target); !errors.Is(err, busy) {
		t.Errorf("got %v", err)
	}
	mounter.Refuse(target, nil)
	if err := volumes.Unbind(mounter, target, target); err != nil {
		t.Error(err)
	}
}

func TestFoldersHaveTheKubeletsNames(t *testing.T) {
	const plugin, folder = "kubernetes.io/empty-dir", "kubernetes.io~empty-dir"
	if got := volumes.DirName(plugin); got != folder {
		t.Errorf("%s lies in %s", plugin, got)
	}
	if got := volumes.PluginName(folder); got != plugin {
		t.Errorf("%s is of %s", folder, got)
	}
}

func TestNothingIsBoundExactlyWhereThisProcessAloneWouldSeeIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	base, source, _ := dirs(t)
	target := filepath.Join(base, "not", "target")
	if err := volumes.BindExactly(mount.Kernel{}, source, target, mount.ReadWrite); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
