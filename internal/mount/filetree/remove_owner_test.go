package filetree_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// removedIn names, to a process of another user, the directory in which it removes a tree.
const removedIn = "STOWAGE_TEST_REMOVED_IN"

// otherUser is a user without root's rights, as root is on most shares.
const otherUser = 65534

func TestTheOwnerOfATreeCanRemoveReadOnlyDirectories(t *testing.T) {
	if base := os.Getenv(removedIn); base != "" {
		if err := filetree.RemoveTree(t.Context(), mounttest.Open(t, base), "tree"); err != nil {
			t.Fatal(err)
		}
		return
	}
	mounttest.NeedsRoot(t)
	base := mounttest.TempDir(t)
	tree := mounttest.MakeDir(t, base, "tree")
	mounttest.WriteFile(t, mounttest.MakeDir(t, tree, "only read", "below"), "file", "")
	mounttest.WriteFile(t, mounttest.MakeDir(t, tree, "closed"), "file", "")
	err := filepath.WalkDir(base, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, otherUser, otherUser))
	})
	err = errors.Join(err, os.Chmod(filepath.Dir(base), 0o755), os.Chmod(filepath.Join(tree, "only read"), 0o555), os.Chmod(filepath.Join(tree, "closed"), 0))
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), removedIn+"="+base)
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	if output, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	mounttest.MustNotExist(t, tree)
}
