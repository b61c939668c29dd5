package volumes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// lookingKernel counts how often the mount table is read.
type lookingKernel struct {
	mount.Kernel
	looks int
}

func (k *lookingKernel) Table() (mount.Table, error) {
	k.looks++
	return k.Kernel.Table()
}

func TestOneMountIsUnmountedWithoutALookAtTheMountTable(t *testing.T) {
	mounttest.NeedsRoot(t)
	base, source, _ := dirs(t)
	kernel, dir := &lookingKernel{}, filepath.Join(base, "volume")
	if err := volumes.Bind(kernel, source, dir, mount.ReadWrite); err != nil {
		t.Fatal(err)
	}
	if err := volumes.Unbind(kernel, dir, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := kernel.Tmpfs(dir, mount.TmpfsOptions{Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := volumes.Remove(t.Context(), kernel, dir); err != nil {
		t.Fatal(err)
	}
	if kernel.looks > 0 {
		t.Errorf("the mount table was read %d times", kernel.looks)
	}
	if left := mounttest.TableOf(t).Below(base); len(left) > 0 {
		t.Errorf("mounted is still %+v", left)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there (%v)", err)
	}
}

func TestWhatIsMountedOnAVolumeIsUnmountedWithIt(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, at := range map[string]string{"over it": "dir/mount", "in it": "dir/mount/in", "around it": "dir", "beside it": "dir/beside"} {
		for how, remove := range map[string]func(target, dir string) error{
			"unbound": func(target, dir string) error { return volumes.Unbind(mount.Kernel{}, target, dir) },
			"removed": func(_, dir string) error { return volumes.Remove(t.Context(), mount.Kernel{}, dir) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				base, source, other := dirs(t)
				dir := filepath.Join(base, "dir")
				target := filepath.Join(dir, "mount")
				if err := os.Mkdir(filepath.Join(source.Name(), "in"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := volumes.Bind(mount.Kernel{}, source, target, mount.ReadWrite); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(base, at), 0o755); err != nil {
					t.Fatal(err)
				}
				mounttest.Bind(t, other.Name(), filepath.Join(base, at), mount.ReadWrite)
				// A directory beside the mount point stays.
				refused := name == "beside it" && how == "unbound"
				if err := remove(target, dir); (err != nil) != refused {
					t.Errorf("refused is %v, not %v", err, refused)
				}
				if left := mounttest.TableOf(t).Below(base); len(left) > 0 {
					t.Errorf("mounted is still %+v", left)
				}
				if _, err := os.Lstat(filepath.Join(source.Name(), "in")); err != nil {
					t.Errorf("the volume's content is gone: %v", err)
				}
			})
		}
	}
}
