package duplicate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/duplicate"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// heapMeter is a context that looks at the heap while work asks whether to go on.
type heapMeter struct {
	context.Context
	asked int
	most  uint64
}

func (m *heapMeter) Err() error {
	m.asked++
	if m.asked%1000 == 0 {
		m.most = max(m.most, heap())
	}
	return m.Context.Err()
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// deepDir makes directories in each other, whose names are as long as they can be, and opens
// the last one. No path leads there: it would be too long.
func deepDir(t *testing.T, top string, levels int) *os.File {
	t.Helper()
	dir, err := os.Open(top)
	for level := 0; level < levels && err == nil; level++ {
		var child *os.File
		if child, err = makeIn(dir, longName("d")); err == nil {
			dir.Close()
			dir = child
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func makeIn(dir *os.File, name string) (*os.File, error) {
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o755); err != nil {
		return nil, err
	}
	return openIn(dir, name)
}

func openIn(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return os.NewFile(uintptr(fd), "deep"), err
}

func longName(letter string) string { return strings.Repeat(letter, 255) }

// follow opens what deepDir would make.
func follow(t *testing.T, top string, levels int) *os.File {
	t.Helper()
	dir, err := os.Open(top)
	for level := 0; level < levels && err == nil; level++ {
		above := dir
		dir, err = openIn(above, longName("d"))
		above.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// linkedFiles makes files of two names each.
func linkedFiles(t *testing.T, dir *os.File, count int) {
	t.Helper()
	for i := range count {
		name := fmt.Sprintf("file-%05d", i)
		fd, err := unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
			err = unix.Linkat(int(dir.Fd()), name, int(dir.Fd()), "same-"+name, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesOfSeveralNamesDeepInATreeCostACopyNoMemory(t *testing.T) {
	const levels, files, most = 240, 2000, 32 * mebibyte
	from, to := t.TempDir(), t.TempDir()
	linkedFiles(t, deepDir(t, from, levels), files)
	meter := &heapMeter{Context: t.Context()}
	before := heap()

	if err := duplicate.Tree(meter, mounttest.Open(t, to), mounttest.Open(t, from)); err != nil {
		t.Fatalf("%.300s", err.Error())
	}

	if taken := meter.most - min(before, meter.most); taken > most {
		t.Errorf("the copy took %d MiB of memory", taken/mebibyte)
	}
	copied := follow(t, to, levels)
	names, err := copied.Readdirnames(-1)
	if err != nil || len(names) != 2*files {
		t.Fatalf("there are %d names: %v", len(names), err)
	}
	for i := range files {
		var one, other unix.Stat_t
		name := fmt.Sprintf("file-%05d", i)
		if unix.Fstatat(int(copied.Fd()), name, &one, 0) != nil || unix.Fstatat(int(copied.Fd()), "same-"+name, &other, 0) != nil ||
			one.Ino != other.Ino || one.Nlink != 2 {
			t.Fatalf("%s has %d names, and is not the same as its other name", name, one.Nlink)
		}
	}
	mustHoldOnly(t, to, longName("d"))
}

func TestAFileOfAsManyNamesAsAFileCanHaveIsCopied(t *testing.T) {
	mounttest.NeedsRoot(t)
	const most = 65_000
	dir := disk(t, "ext4")
	from, to := makeDir(t, dir, "from"), makeDir(t, dir, "to")
	first := write(t, filepath.Join(from, "0"), 0, map[int64]string{0: "x"})
	for i := range most - 1 {
		if err := os.Link(first.Name(), filepath.Join(from, fmt.Sprint(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := duplicate.Tree(t.Context(), mounttest.Open(t, to), mounttest.Open(t, from)); err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(to, "0"), &stat); err != nil || stat.Nlink != most {
		t.Errorf("the copy has %d names: %v", stat.Nlink, err)
	}
}

func TestACopyOfATreeThatIsCancelledHalfwayCanBeMadeAnew(t *testing.T) {
	for step := 1; step < 8; step++ {
		from := t.TempDir()
		write(t, filepath.Join(from, "one"), 0, nil)
		for _, name := range []string{"two", "three", "four"} {
			if err := os.Link(filepath.Join(from, "one"), filepath.Join(from, name)); err != nil {
				t.Fatal(err)
			}
		}
		ctx := &endsAt{Context: t.Context(), left: step}
		err := duplicate.Tree(ctx, mounttest.Open(t, t.TempDir()), mounttest.Open(t, from))
		whole := t.TempDir()
		if again := duplicate.Tree(t.Context(), mounttest.Open(t, whole), mounttest.Open(t, from)); again != nil {
			t.Errorf("given up with %v, then %v", err, again)
		}
		mustHoldOnly(t, whole, "one", "two", "three", "four")
	}
}

// endsAt is a context that is over once it was asked so often.
type endsAt struct {
	context.Context
	left int
}

func (e *endsAt) Err() error {
	e.left--
	if e.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestAnErrorDeepInATreeNamesAPathOfBoundedLength(t *testing.T) {
	from := t.TempDir()
	deep := deepDir(t, from, 256)
	if _, err := makeIn(deep, longName("e")); err != nil {
		t.Fatal(err)
	}
	err := duplicate.Tree(t.Context(), mounttest.Open(t, t.TempDir()), mounttest.Open(t, from))
	if err == nil || len(err.Error()) > 5000 {
		t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
	}
}

func TestACopyWaitsForNoRenamesWithoutBound(t *testing.T) {
	from := t.TempDir()
	write(t, filepath.Join(from, "file"), 0, nil)
	to, source := mounttest.Open(t, t.TempDir()), mounttest.Open(t, from)
	busy := mounttest.Refusal{First: unix.SYS_OPENAT2, Last: unix.SYS_OPENAT2, Errno: unix.EAGAIN}
	done := make(chan error, 1)
	go func() {
		done <- busy.Under(t, func() error { return duplicate.Tree(t.Context(), to, source) })
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("it was copied")
		}
	case <-t.Context().Done():
		t.Error("it tries without end")
	}
}

func mustHoldOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil || len(found) != len(names) {
		t.Errorf("it holds %v: %v", found, err)
	}
}
