package mount_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

var kernel = mount.Kernel{}

func TestABindMountShowsTheDirectory(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	source, target := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, "target")

	mounttest.Bind(t, source, target, mount.ReadWrite)

	mounttest.WriteFile(t, target, "file", "hello")
	mounttest.MustHold(t, filepath.Join(source, "file"), "hello")
	point, found := mounttest.TableOf(t).At(target)
	if !found || point.Access != mount.ReadWrite || filepath.Base(point.Root) != "source" {
		t.Errorf("the mount table shows %+v (%v)", point, found)
	}
}

func TestAReadOnlyBindMountCannotBeWrittenButItsSourceCan(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	source, target := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, "target")

	mounttest.Bind(t, source, target, mount.ReadOnly)

	if err := os.WriteFile(filepath.Join(target, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gave %v", err)
	}
	mounttest.WriteFile(t, source, "file", "hello")
	mounttest.MustHold(t, filepath.Join(target, "file"), "hello")
	if point, _ := mounttest.TableOf(t).At(target); point.Access != mount.ReadOnly {
		t.Errorf("the mount table shows %+v", point)
	}
}

func TestAMountIsFoundAndUnmountedWhateverItsNameIs(t *testing.T) {
	mounttest.NeedsRoot(t)
	for _, name := range []string{"a b", "a\nb", "a\tb", `a\b`, `a\040b`, "a#b", "a\u00a0b", "a (deleted)", "ä", "a,b"} {
		t.Run(name, func(t *testing.T) {
			dir := mounttest.TempDir(t)
			source, target := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, name)
			mounttest.Bind(t, source, target, mount.ReadWrite)
			if !mounttest.TableOf(t).IsMountPoint(target) {
				t.Error("it isn't found after mounting")
			}
			if err := kernel.Unmount(target); err != nil {
				t.Error(err)
			}
			if mounttest.TableOf(t).IsMountPoint(target) {
				t.Error("it is found after unmounting")
			}
		})
	}
}

func TestUnmountUnmountsTheTopmostMount(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	first, second, target := mounttest.MakeDir(t, dir, "first"), mounttest.MakeDir(t, dir, "second"), mounttest.MakeDir(t, dir, "target")
	mounttest.Bind(t, first, target, mount.ReadWrite)
	mounttest.Bind(t, second, target, mount.ReadWrite)

	if point, _ := mounttest.TableOf(t).At(target); filepath.Base(point.Root) != "second" {
		t.Errorf("the topmost mount is %+v", point)
	}
	if err := kernel.Unmount(target); err != nil {
		t.Fatal(err)
	}
	if point, _ := mounttest.TableOf(t).At(target); filepath.Base(point.Root) != "first" {
		t.Errorf("below it is %+v", point)
	}
}

func TestUnmountBelowUnmountsWhatIsMountedOverAndInside(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	source, target := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, "target")
	mounttest.Bind(t, source, target, mount.ReadWrite)
	mounttest.Bind(t, source, mounttest.MakeDir(t, target, "inside"), mount.ReadWrite)
	mounttest.Bind(t, source, target, mount.ReadWrite)
	mounttest.Bind(t, source, mounttest.MakeDir(t, target, "inside"), mount.ReadWrite)

	if err := mount.UnmountBelow(kernel, target); err != nil {
		t.Fatal(err)
	}
	if left := mounttest.TableOf(t).Below(target); len(left) > 0 {
		t.Errorf("still mounted: %+v", left)
	}
}

func TestUnmountOfWhatIsNotMountedIsASuccess(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	for _, path := range []string{dir, filepath.Join(dir, "missing"), mounttest.WriteFile(t, dir, "file", "")} {
		if err := kernel.Unmount(path); err != nil {
			t.Error(err)
		}
	}
}

func TestUnmountOfAMountInUseIsAnErrorAndItStays(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	source, target := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, "target")
	mounttest.Bind(t, source, target, mount.ReadWrite)
	user, err := os.Create(filepath.Join(target, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()

	if err := mount.UnmountBelow(kernel, target); !errors.Is(err, unix.EBUSY) {
		t.Errorf("got %v", err)
	}
	if !mounttest.TableOf(t).IsMountPoint(target) {
		t.Error("it is gone")
	}
}

func TestATmpfsHasItsSizeAndMode(t *testing.T) {
	mounttest.NeedsRoot(t)
	target := mounttest.TempDir(t)
	if err := kernel.Tmpfs(target, mount.TmpfsOptions{Bytes: 1 << 20, Mode: 0o777}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mounttest.Unmount(t, target) })

	info, err := os.Stat(target)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(target, "big"), make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing more than its size gave %v", err)
	}
	if point, _ := mounttest.TableOf(t).At(target); point.FSType != "tmpfs" {
		t.Errorf("the mount table shows %+v", point)
	}
}

func TestNothingIsMountedThroughASymlink(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	source, elsewhere := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, "elsewhere")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if err := kernel.Bind(mounttest.Open(t, source), link, mount.ReadWrite); err == nil {
		t.Error("it was mounted")
	}
	if points := mounttest.TableOf(t).Below(dir); len(points) > 0 {
		t.Errorf("mounted: %+v", points)
	}
}

func TestWhereADirectoryIsVisible(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	volume, target := mounttest.MakeDir(t, dir, "volume"), mounttest.MakeDir(t, dir, "target")
	sub, neighbour := mounttest.MakeDir(t, volume, "sub"), mounttest.MakeDir(t, dir, "volume2")
	visible := func() int {
		points, err := mount.Visible(mounttest.Open(t, volume))
		if err != nil {
			t.Fatal(err)
		}
		return len(points)
	}

	mounttest.Bind(t, neighbour, target, mount.ReadWrite)
	if n := visible(); n != 0 {
		t.Errorf("%d mounts of a directory of which only a neighbour is mounted", n)
	}
	for name, source := range map[string]string{"itself": volume, "a part of it": sub} {
		at := mounttest.MakeDir(t, dir, "at")
		mounttest.Bind(t, source, at, mount.ReadOnly)
		if n := visible(); n != 1 {
			t.Errorf("%d mounts of a directory of which %s is mounted", n, name)
		}
		if err := kernel.Unmount(at); err != nil {
			t.Fatal(err)
		}
	}
	mounttest.Bind(t, neighbour, sub, mount.ReadWrite)
	if n := visible(); n != 1 {
		t.Errorf("%d mounts of a directory that something is mounted in", n)
	}
}

func TestMountsAreMadeOnTheOldestKernel(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	source, target := mounttest.Open(t, mounttest.MakeDir(t, dir, "source")), mounttest.MakeDir(t, dir, "target")
	err := mounttest.NewerThanLinux512.Under(t, func() error {
		kernel := mount.Kernel{}
		if err := kernel.Tmpfs(target, mount.TmpfsOptions{Mode: 0o755}); err != nil {
			return err
		}
		if err := kernel.Bind(source, target, mount.ReadOnly); err != nil {
			return err
		}
		return mount.UnmountBelow(kernel, target)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAMountPointIsFoundByItsPathAlone(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	target, link := mounttest.MakeDir(t, dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.Symlink(target, link), kernel.Tmpfs(target, mount.TmpfsOptions{Mode: 0o755})); err != nil {
		t.Fatal(err)
	}
	inside, missing := mounttest.MakeDir(t, target, "inside"), filepath.Join(dir, "missing")
	for path, want := range map[string]bool{target: true, inside: false, link: false, missing: false, dir: false} {
		if got, err := kernel.IsMountPoint(path); err != nil || got != want {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	if err := kernel.Unmount(target); err != nil {
		t.Fatal(err)
	}
	if got, err := kernel.IsMountPoint(target); err != nil || got {
		t.Errorf("once it is unmounted: %v, %v", got, err)
	}
}
