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

// bind mounts source at target, and unmounts everything there at the end.
func bind(t *testing.T, source, target string, access mount.Access) {
	t.Helper()
	if err := kernel.Bind(mounttest.Open(t, source), target, access); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.UnmountBelow(kernel, target); err != nil {
			t.Error(err)
		}
	})
}

func unmount(t *testing.T, path string) {
	t.Helper()
	if err := kernel.Unmount(path); err != nil {
		t.Error(err)
	}
}

func tableOf(t *testing.T) mount.Table {
	t.Helper()
	table, err := kernel.Table()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestABindMountShowsTheDirectory(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")

	bind(t, source, target, mount.ReadWrite)

	writeFile(t, target, "file", "hello")
	mustHold(t, filepath.Join(source, "file"), "hello")
	point, found := tableOf(t).At(target)
	if !found || point.Access != mount.ReadWrite || filepath.Base(point.Root) != "source" {
		t.Errorf("the mount table shows %+v (%v)", point, found)
	}
}

func TestAReadOnlyBindMountCannotBeWrittenButItsSourceCan(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")

	bind(t, source, target, mount.ReadOnly)

	if err := os.WriteFile(filepath.Join(target, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gave %v", err)
	}
	writeFile(t, source, "file", "hello")
	mustHold(t, filepath.Join(target, "file"), "hello")
	if point, _ := tableOf(t).At(target); point.Access != mount.ReadOnly {
		t.Errorf("the mount table shows %+v", point)
	}
}

func TestAMountIsFoundAndUnmountedWhateverItsNameIs(t *testing.T) {
	mounttest.NeedsRoot(t)
	for _, name := range []string{"a b", "a\nb", "a\tb", `a\b`, `a\040b`, "a#b", "a\u00a0b", "a (deleted)", "ä", "a,b"} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			source, target := makeDir(t, dir, "source"), makeDir(t, dir, name)
			bind(t, source, target, mount.ReadWrite)
			if !tableOf(t).IsMountPoint(target) {
				t.Error("it isn't found after mounting")
			}
			if err := kernel.Unmount(target); err != nil {
				t.Error(err)
			}
			if tableOf(t).IsMountPoint(target) {
				t.Error("it is found after unmounting")
			}
		})
	}
}

func TestUnmountTakesTheTopmostMountAway(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	first, second, target := makeDir(t, dir, "first"), makeDir(t, dir, "second"), makeDir(t, dir, "target")
	bind(t, first, target, mount.ReadWrite)
	bind(t, second, target, mount.ReadWrite)

	if point, _ := tableOf(t).At(target); filepath.Base(point.Root) != "second" {
		t.Errorf("the topmost mount is %+v", point)
	}
	if err := kernel.Unmount(target); err != nil {
		t.Fatal(err)
	}
	if point, _ := tableOf(t).At(target); filepath.Base(point.Root) != "first" {
		t.Errorf("below it is %+v", point)
	}
}

func TestUnmountBelowTakesAwayWhatIsMountedOverAndInside(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")
	bind(t, source, target, mount.ReadWrite)
	bind(t, source, makeDir(t, target, "inside"), mount.ReadWrite)
	bind(t, source, target, mount.ReadWrite)
	bind(t, source, makeDir(t, target, "inside"), mount.ReadWrite)

	if err := mount.UnmountBelow(kernel, target); err != nil {
		t.Fatal(err)
	}
	if left := tableOf(t).Below(target); len(left) > 0 {
		t.Errorf("still mounted: %+v", left)
	}
}

func TestUnmountOfWhatIsNotMountedIsASuccess(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	for _, path := range []string{dir, filepath.Join(dir, "missing"), writeFile(t, dir, "file", "")} {
		if err := kernel.Unmount(path); err != nil {
			t.Error(err)
		}
	}
}

func TestUnmountOfAMountInUseIsAnErrorAndItStays(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")
	bind(t, source, target, mount.ReadWrite)
	user, err := os.Create(filepath.Join(target, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()

	if err := mount.UnmountBelow(kernel, target); !errors.Is(err, unix.EBUSY) {
		t.Errorf("got %v", err)
	}
	if !tableOf(t).IsMountPoint(target) {
		t.Error("it is gone")
	}
}

func TestATmpfsHasItsSizeAndMode(t *testing.T) {
	mounttest.NeedsRoot(t)
	target := tempDir(t)
	if err := kernel.Tmpfs(target, mount.TmpfsOptions{Bytes: 1 << 20, Mode: 0o777}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unmount(t, target) })

	info, err := os.Stat(target)
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(target, "big"), make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing more than its size gave %v", err)
	}
	if point, _ := tableOf(t).At(target); point.FSType != "tmpfs" {
		t.Errorf("the mount table shows %+v", point)
	}
}

func TestNothingIsMountedThroughASymlink(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	source, elsewhere := makeDir(t, dir, "source"), makeDir(t, dir, "elsewhere")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if err := kernel.Bind(mounttest.Open(t, source), link, mount.ReadWrite); err == nil {
		t.Error("it was mounted")
	}
	if points := tableOf(t).Below(dir); len(points) > 0 {
		t.Errorf("mounted: %+v", points)
	}
}

func TestWhereADirectoryIsVisible(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	volume, target := makeDir(t, dir, "volume"), makeDir(t, dir, "target")
	sub, neighbour := makeDir(t, volume, "sub"), makeDir(t, dir, "volume2")
	visible := func() int {
		points, err := mount.Visible(mounttest.Open(t, volume))
		if err != nil {
			t.Fatal(err)
		}
		return len(points)
	}

	bind(t, neighbour, target, mount.ReadWrite)
	if n := visible(); n != 0 {
		t.Errorf("%d mounts of a directory of which only a neighbour is mounted", n)
	}
	for name, source := range map[string]string{"itself": volume, "a part of it": sub} {
		at := makeDir(t, dir, "at")
		bind(t, source, at, mount.ReadOnly)
		if n := visible(); n != 1 {
			t.Errorf("%d mounts of a directory of which %s is mounted", n, name)
		}
		if err := kernel.Unmount(at); err != nil {
			t.Fatal(err)
		}
	}
	bind(t, neighbour, sub, mount.ReadWrite)
	if n := visible(); n != 1 {
		t.Errorf("%d mounts of a directory that something is mounted in", n)
	}
}

func TestMountsAreMadeOnTheOldestKernel(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := tempDir(t)
	source, target := mounttest.Open(t, makeDir(t, dir, "source")), makeDir(t, dir, "target")
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
