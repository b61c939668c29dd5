package duplicate_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/duplicate"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

const mebibyte = 1 << 20

// shares lists which file systems let files share blocks.
var shares = map[string]bool{"ext4": false, "xfs": true, "btrfs": true}

func TestMain(m *testing.M) { mounttest.Main(m) }

func TestACopyOfAFileHoldsTheSameAndKeepsItsHoles(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		from := write(t, filepath.Join(dir, "from"), 40*mebibyte, map[int64]string{0: "first", 17*mebibyte + 5: "middle", 40*mebibyte - 4: "last"})
		to := write(t, filepath.Join(dir, "to"), 0, nil)
		if err := duplicate.File(t.Context(), to, from); err != nil {
			t.Fatal(err)
		}
		mustEqual(t, to.Name(), from.Name())
		if used := blocks(t, to); used > mebibyte {
			t.Errorf("the copy takes %d bytes", used)
		}
	})
}

func TestFilesShareBlocksWhereTheFileSystemCan(t *testing.T) {
	onEach(t, func(t *testing.T, dir string) {
		system := filepath.Base(dir)
		from := write(t, filepath.Join(dir, "from"), 0, map[int64]string{0: strings.Repeat("x", 64*mebibyte)})
		before := free(t, dir)
		to := write(t, filepath.Join(dir, "to"), 0, nil)
		err := duplicate.Share(to, from)
		if shares[system] != (err == nil) || err != nil && !errors.Is(err, duplicate.ErrCannotShare) {
			t.Fatalf("sharing: %v", err)
		}
		if err != nil {
			return
		}
		mustEqual(t, to.Name(), from.Name())
		if taken := before - free(t, dir); taken > 8*mebibyte {
			t.Errorf("sharing took %d bytes", taken)
		}
	})
}

func TestACopyThatIsCancelledEnds(t *testing.T) {
	dir := t.TempDir()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	from, to := write(t, filepath.Join(dir, "from"), 0, map[int64]string{0: "x"}), write(t, filepath.Join(dir, "to"), 0, nil)
	if err := duplicate.File(over, to, from); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := duplicate.Tree(over, mounttest.Open(t, t.TempDir()), mounttest.Open(t, dir)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhereTheKernelDoesNotCopyTheAgentDoes(t *testing.T) {
	dir := t.TempDir()
	from := write(t, filepath.Join(dir, "from"), 0, map[int64]string{0: strings.Repeat("x", 3*mebibyte+7)})
	to := write(t, filepath.Join(dir, "to"), 0, nil)
	refused := mounttest.Refusal{First: unix.SYS_COPY_FILE_RANGE, Last: unix.SYS_COPY_FILE_RANGE, Errno: unix.ENOSYS}
	if err := refused.Under(t, func() error { return duplicate.File(t.Context(), to, from) }); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, to.Name(), from.Name())
}

// onEach runs a test in a directory of each file system, named after it.
func onEach(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	for system := range shares {
		t.Run(system, func(t *testing.T) {
			mounttest.NeedsRoot(t)
			test(t, disk(t, system))
		})
	}
}

// disk mounts a disk until the test ends.
func disk(t *testing.T, system string) string {
	t.Helper()
	if _, err := exec.LookPath("mkfs." + system); err != nil {
		t.Skip("NOT RUN: mkfs." + system + " is missing: install e2fsprogs, xfsprogs and btrfs-progs")
	}
	image := write(t, filepath.Join(t.TempDir(), "disk"), 400*mebibyte, nil)
	if output, err := exec.Command("mkfs."+system, "-q", image.Name()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	loop, err := loopdev.Attach(t.Context(), image, loopdev.ForFileSystem)
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	dir := filepath.Join(t.TempDir(), system)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (mount.Kernel{}).FileSystem(mount.FileSystem{Type: system, Source: loop.Path()}, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.UnmountBelow(mount.Kernel{}, dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// write makes a file of some size, a hole but for some texts, and keeps it open.
func write(t *testing.T, path string, size int64, texts map[int64]string) *os.File {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	err = file.Truncate(size)
	for at, text := range texts {
		_, written := file.WriteAt([]byte(text), at)
		err = errors.Join(err, written)
	}
	if err := errors.Join(err, file.Sync()); err != nil {
		t.Fatal(err)
	}
	return file
}

func mustEqual(t *testing.T, one, other string) {
	t.Helper()
	if output, err := exec.Command("cmp", one, other).CombinedOutput(); err != nil {
		t.Errorf("%s", output)
	}
}

// blocks is how much of the disk a file takes.
func blocks(t *testing.T, file *os.File) int64 {
	t.Helper()
	var stat unix.Stat_t
	if err := errors.Join(file.Sync(), unix.Fstat(int(file.Fd()), &stat)); err != nil {
		t.Fatal(err)
	}
	return stat.Blocks * 512
}

// free is how much of a disk is free.
func free(t *testing.T, dir string) int64 {
	t.Helper()
	at := mounttest.Open(t, dir)
	var stat unix.Statfs_t
	if err := errors.Join(unix.Syncfs(int(at.Fd())), unix.Fstatfs(int(at.Fd()), &stat)); err != nil {
		t.Fatal(err)
	}
	return int64(stat.Bavail) * stat.Bsize
}
