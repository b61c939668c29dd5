package quota_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/quota"
)

func TestADirectoryIsHeldToItsLimit(t *testing.T) {
	onEach(t, func(t *testing.T, disk string) {
		dir := begin(t, disk, "pvc-1", 8*mebibyte)
		if err := write(filepath.Join(dir.Name(), "file"), 16*mebibyte); !isFull(err) {
			t.Errorf("16 Mi were written to 8: %v", err)
		}
		if err := write(filepath.Join(disk, "beside"), 16*mebibyte); err != nil {
			t.Errorf("the limit holds beside it: %v", err)
		}
		usage := usageOf(t, dir)
		if usage.Bytes > 8*mebibyte || usage.Bytes < 7*mebibyte || usage.Inodes != 2 || usage.Limit != limit(8*mebibyte) {
			t.Errorf("got %+v", usage)
		}
	})
}

func TestALimitGrowsWhileTheDirectoryIsInUse(t *testing.T) {
	onEach(t, func(t *testing.T, disk string) {
		dir := begin(t, disk, "pvc-1", 8*mebibyte)
		if err := quota.SetLimits(dir, projectOf(t, dir), limit(32*mebibyte)); err != nil {
			t.Fatal(err)
		}
		if err := write(filepath.Join(dir.Name(), "file"), 16*mebibyte); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsInSubdirectoriesCounts(t *testing.T) {
	onEach(t, func(t *testing.T, disk string) {
		dir := begin(t, disk, "pvc-1", 8*mebibyte)
		below := filepath.Join(dir.Name(), "a", "b")
		if err := os.MkdirAll(below, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := write(filepath.Join(below, "file"), 16*mebibyte); !isFull(err) {
			t.Errorf("16 Mi were written to 8: %v", err)
		}
	})
}

func TestNoTwoDirectoriesHaveOneProject(t *testing.T) {
	onEach(t, func(t *testing.T, disk string) {
		first, second := begin(t, disk, "one", mebibyte), mounttest.Open(t, mkdir(t, disk, "two"))
		if err := quota.Begin(second, "one", limit(mebibyte)); err != nil {
			t.Fatal(err)
		}
		if a, b := projectOf(t, first), projectOf(t, second); a == b || !a.MayBeOf("one") || !b.MayBeOf("one") || a.MayBeOf("two") {
			t.Errorf("got %d and %d", a, b)
		}
	})
}

func TestAProjectThatACrashLeftWithoutFilesIsUsedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, disk string) {
		first := begin(t, disk, "pvc-1", mebibyte)
		before := projectOf(t, first)
		if err := os.Remove(first.Name()); err != nil {
			t.Fatal(err)
		}
		first.Close()
		awaitEmpty(t, mounttest.Open(t, disk), before)
		if again := projectOf(t, begin(t, disk, "pvc-1", 2*mebibyte)); again != before {
			t.Errorf("it was %d, and is %d", before, again)
		}
	})
}

func TestOthersEnforceNothing(t *testing.T) {
	if enforced(t, mounttest.Open(t, t.TempDir())) {
		t.Error("the machine's own disk has project quotas: this test proves nothing")
	}
	for kind, how := range kinds {
		t.Run(kind, func(t *testing.T) {
			dir := mounttest.Open(t, newDisk(t, kind, how.make, ""))
			if enforced(t, dir) {
				t.Error("limits are enforced, though it was mounted without prjquota")
			}
			if project := projectOf(t, dir); project != 0 {
				t.Errorf("its project is %d", project)
			}
		})
	}
}

// TestTheOwnerOfADirectoryCanLeaveItsProject is what the documentation says: the kernel lets
// the owner of a file set another project, but not from a user namespace.
func TestTheOwnerOfADirectoryCanLeaveItsProject(t *testing.T) {
	onEach(t, func(t *testing.T, disk string) {
		dir := begin(t, disk, "pvc-1", 8*mebibyte)
		own := mkdir(t, dir.Name(), "own")
		if err := os.Chown(own, someUser, someUser); err != nil {
			t.Fatal(err)
		}
		if err := leaveAsSomeUser(t, own, syscall.CLONE_NEWUSER); err == nil || !strings.Contains(err.Error(), unix.EINVAL.Error()) {
			t.Errorf("from a user namespace: %v", err)
		}
		if err := leaveAsSomeUser(t, own, 0); err != nil || projectOf(t, mounttest.Open(t, own)) != 0 {
			t.Errorf("as the owner: %v", err)
		}
		if err := leaveAsSomeUser(t, dir.Name(), 0); err == nil || !strings.Contains(err.Error(), unix.EPERM.Error()) {
			t.Errorf("as another user: %v", err)
		}
	})
}

// awaitEmpty waits until nothing of a project is left: xfs removes files a little later.
func awaitEmpty(t *testing.T, disk *os.File, project quota.Project) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		usage, err := quota.Of(disk, project)
		if err != nil {
			t.Fatal(err)
		}
		if usage.Inodes == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it has %+v still", usage)
		}
	}
}

func mkdir(t *testing.T, parent, name string) string {
	t.Helper()
	path := filepath.Join(parent, name)
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// begin makes a directory that is limited.
func begin(t *testing.T, disk, name string, bytes int64) *os.File {
	t.Helper()
	dir := mounttest.Open(t, mkdir(t, disk, name))
	if err := quota.Begin(dir, name, limit(bytes)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func enforced(t *testing.T, dir *os.File) bool {
	t.Helper()
	enforced, err := quota.Enforced(dir)
	if err != nil {
		t.Fatal(err)
	}
	return enforced
}

func projectOf(t *testing.T, dir *os.File) quota.Project {
	t.Helper()
	project, err := quota.ProjectOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func usageOf(t *testing.T, dir *os.File) quota.Usage {
	t.Helper()
	usage, err := quota.Of(dir, projectOf(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return usage
}

func limit(bytes int64) quota.Limits { return quota.Limits{Bytes: bytes} }

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
