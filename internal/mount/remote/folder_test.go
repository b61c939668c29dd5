package remote_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/remote"
)

var folder = remote.Folder{Parent: "folders", Name: "one", UID: 1000, GID: 2000, Mode: 0o770 | os.ModeSetgid}

// likeNFS is a kernel whose file systems rename as NFS does.
var likeNFS = mounttest.Refusal{First: unix.SYS_RENAMEAT2, Last: unix.SYS_RENAMEAT2, Errno: unix.EINVAL}

// newShare mounts a file system in memory.
func newShare(t *testing.T) string {
	t.Helper()
	mounttest.NeedsRoot(t)
	share := mounttest.TempDir(t)
	tmpfs(t, share)
	t.Cleanup(func() { mounttest.Unmount(t, share) })
	return share
}

func mustMakeFolder(t *testing.T, share string) (path string) {
	t.Helper()
	if err := calls.MakeFolder(t.Context(), share, folder); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(share, folder.Parent, folder.Name)
	mustBeWhole(t, path)
	return path
}

// mustBeWhole fails if a folder is there without its owner and mode.
func mustBeWhole(t *testing.T, path string) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	of := info.Sys().(*syscall.Stat_t)
	if info.Mode() != folder.Mode|os.ModeDir || int(of.Uid) != folder.UID || int(of.Gid) != folder.GID {
		t.Errorf("it has %s, user %d, group %d", info.Mode(), of.Uid, of.Gid)
	}
}

func mustRemoveFolder(t *testing.T, share string) {
	t.Helper()
	if err := calls.RemoveFolder(t.Context(), share, folder); err != nil {
		t.Fatal(err)
	}
	left := namesIn(t, share, folder.Parent)
	if len(left) != 1 || left[0] != ".deleting" || len(namesIn(t, share, folder.Parent, ".deleting")) > 0 {
		t.Errorf("left: %v, and in .deleting %v", left, namesIn(t, share, folder.Parent, ".deleting"))
	}
}

func namesIn(t *testing.T, parts ...string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestAFolderIsMadeOnceWithItsOwnerAndItsMode(t *testing.T) {
	share := newShare(t)
	path := mustMakeFolder(t, share)
	file := mounttest.WriteFile(t, path, "file", "hello")
	mustMakeFolder(t, share)
	mounttest.MustHold(t, file, "hello")
	if info, err := os.Lstat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("folders lie in %v (%v)", info.Mode(), err)
	}
}

//proves:inline/folder
func TestAFolderIsRemovedWithAllThatItHoldsAndNothingElse(t *testing.T) {
	share := newShare(t)
	outside := mounttest.WriteFile(t, mounttest.TempDir(t), "outside", "precious")
	for range 2 {
		path := mustMakeFolder(t, share)
		beside := mounttest.WriteFile(t, mounttest.MakeDir(t, filepath.Dir(path), "beside"), "file", "another's")
		mounttest.WriteFile(t, mounttest.MakeDir(t, path, "a", "b"), "file", "")
		if err := errors.Join(os.Symlink(filepath.Dir(outside), filepath.Join(path, "way-out")), os.Symlink("../beside", filepath.Join(path, "aside"))); err != nil {
			t.Fatal(err)
		}
		if err := calls.RemoveFolder(t.Context(), share, folder); err != nil {
			t.Fatal(err)
		}
		mounttest.MustNotExist(t, path)
		mounttest.MustHold(t, beside, "another's")
		mounttest.MustHold(t, outside, "precious")
	}
	if err := calls.RemoveFolder(t.Context(), share, folder); err != nil {
		t.Errorf("removing what is gone gave %v", err)
	}
}

func TestWhereNoShareIsMountedNothingIsMadeAndNothingCountsAsRemoved(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	for name, err := range map[string]error{
		"making": calls.MakeFolder(t.Context(), dir, folder), "removing": calls.RemoveFolder(t.Context(), dir, folder),
	} {
		if err == nil || !strings.Contains(err.Error(), "nothing is mounted there") {
			t.Errorf("%s gave %v", name, err)
		}
	}
	mounttest.MustNotExist(t, filepath.Join(dir, folder.Parent))
}

func TestAFolderOnWhichSomethingIsMountedStays(t *testing.T) {
	share := newShare(t)
	inner := mounttest.MakeDir(t, mustMakeFolder(t, share), "inner")
	tmpfs(t, inner)
	t.Cleanup(func() { mounttest.Unmount(t, filepath.Join(share, folder.Parent, ".deleting", folder.Name, "inner")) })
	file := mounttest.WriteFile(t, inner, "file", "precious")
	if err := calls.RemoveFolder(t.Context(), share, folder); err == nil || !strings.Contains(err.Error(), mount.ErrMounted.Error()) {
		t.Errorf("got %v", err)
	}
	mounttest.MustHold(t, strings.Replace(file, folder.Name, filepath.Join(".deleting", folder.Name), 1), "precious")
}

//proves:inline/folder
func TestWhatIsNoFolderIsNeverFollowedOrRemoved(t *testing.T) {
	elsewhere := mounttest.TempDir(t)
	precious := mounttest.WriteFile(t, mounttest.MakeDir(t, elsewhere, folder.Name), "file", "precious")
	tests := map[string]func(share string) error{
		"a symlink in place of the parent": func(share string) error { return os.Symlink(elsewhere, filepath.Join(share, folder.Parent)) },
		"a symlink in place of the folder": func(share string) error {
			return os.Symlink(filepath.Dir(precious), filepath.Join(mounttest.MakeDir(t, share, folder.Parent), folder.Name))
		},
		"a file in place of the folder": func(share string) error {
			return os.WriteFile(filepath.Join(mounttest.MakeDir(t, share, folder.Parent), folder.Name), nil, 0o600)
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			share := newShare(t)
			if err := prepare(share); err != nil {
				t.Fatal(err)
			}
			if err := calls.MakeFolder(t.Context(), share, folder); err == nil {
				t.Error("making it succeeds")
			}
			if err := calls.RemoveFolder(t.Context(), share, folder); err == nil {
				t.Error("removing it succeeds")
			}
			if _, err := os.Lstat(filepath.Join(share, folder.Parent, folder.Name)); err != nil {
				t.Error(err)
			}
			mounttest.MustHold(t, precious, "precious")
		})
	}
}

func TestAFolderIsWholeOrNotThereWheneverItsMakerIsKilled(t *testing.T) {
	share := newShare(t)
	path := filepath.Join(share, folder.Parent, folder.Name)
	for patience := 2 * time.Millisecond; patience < 2*time.Second; patience *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		made := calls.MakeFolder(ctx, share, folder)
		cancel()
		if _, err := os.Lstat(path); made == nil || err == nil {
			mustBeWhole(t, path)
		}
		mounttest.WriteFile(t, mustMakeFolder(t, share), "file", "hello")

		ctx, cancel = context.WithTimeout(t.Context(), patience)
		_ = calls.RemoveFolder(ctx, share, folder) // whether it ended in time or not
		cancel()
		mustRemoveFolder(t, share)
	}
}

func TestTheRestOfAKilledProcessIsRemoved(t *testing.T) {
	for name, left := range map[string]string{"half made": ".new-one", "half removed": ".deleting/one"} {
		t.Run(name, func(t *testing.T) {
			share := newShare(t)
			mounttest.WriteFile(t, mounttest.MakeDir(t, share, folder.Parent, left, "a"), "file", "")
			mustRemoveFolder(t, share)
			mounttest.WriteFile(t, mounttest.MakeDir(t, share, folder.Parent, left, "a"), "file", "")
			mounttest.WriteFile(t, mustMakeFolder(t, share), "file", "")
			mustRemoveFolder(t, share)
		})
	}
}

func TestFoldersAreMadeAndRemovedWhereRenamesAreAsSimpleAsOnNFS(t *testing.T) {
	share := newShare(t)
	path := filepath.Join(share, folder.Parent, folder.Name)
	if err := likeNFS.Under(t, func() error { return folder.Make(t.Context(), share) }); err != nil {
		t.Fatal(err)
	}
	mustBeWhole(t, path)
	// Deeper than directories are held open, and with the names that are used for what
	// lies too deep.
	deep := path
	for range 300 {
		deep = filepath.Join(deep, "d")
	}
	mounttest.WriteFile(t, mounttest.MakeDir(t, deep), "file", "")
	mounttest.WriteFile(t, path, ".moved-1", "")
	mounttest.WriteFile(t, mounttest.MakeDir(t, path, ".moved-2"), "file", "")
	if err := likeNFS.Under(t, func() error { return folder.Remove(t.Context(), share) }); err != nil {
		t.Fatal(err)
	}
	mustRemoveFolder(t, share)
}

func TestARemovalThatTakesLongGoesOnInTheNextProcess(t *testing.T) {
	share := newShare(t)
	mounttest.WriteFile(t, mustMakeFolder(t, share), "file", "")
	if err := remote.RemoveFor(folder, 0, share); !errors.Is(err, unix.EINPROGRESS) {
		t.Errorf("without any time: %v", err)
	}
	mustRemoveFolder(t, share)
}
