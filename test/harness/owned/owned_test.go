package owned_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/test/harness/owned"
)

func TestAFolderIsItsMakersAsLongAsThatLives(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := owned.Folder("sample")
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := owned.Owner(folder); pid != os.Getpid() || err != nil {
		t.Errorf("the owner is %d, %v, not %d", pid, err, os.Getpid())
	}
}

func TestAFolderWhoseOwnerHasEndedHasNone(t *testing.T) {
	folder := filepath.Join(t.TempDir(), owned.Prefix+"sample")
	write(t, folder, "1")
	if pid, err := owned.Owner(folder); pid != 0 || err != nil {
		t.Errorf("the owner is %d, %v", pid, err)
	}
}

func TestAFolderThatStillHoldsSomethingKeepsItsOwner(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := owned.Folder("sample")
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(folder, "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := owned.Release(folder); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("releasing it gave %v", err)
	}
	if pid, err := owned.Owner(folder); pid != os.Getpid() || err != nil {
		t.Errorf("its owner is %d, %v", pid, err)
	}
	if err := errors.Join(os.Remove(left), owned.Release(folder)); err != nil {
		t.Error(err)
	}
}

func TestOtherFoldersAreForeign(t *testing.T) {
	top := t.TempDir()
	person, empty, link := filepath.Join(top, "person"), filepath.Join(top, owned.Prefix+"empty"), filepath.Join(top, owned.Prefix+"link")
	write(t, person, "1")
	write(t, empty, "")
	if err := os.Symlink(person, link); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{person, empty, link, top} {
		if _, err := owned.Owner(folder); !errors.Is(err, owned.ErrForeign) {
			t.Errorf("of %s it is %v", folder, err)
		}
	}
}

func TestTheTemporaryFolderIsMadeOnceAndPutBack(t *testing.T) {
	before, err := os.MkdirTemp("/var/tmp", "") //nolint:usetesting // that of the test may lie in one already
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(before); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", before)
	remove, err := owned.Temporary("sample")
	if err != nil {
		t.Fatal(err)
	}
	folder := os.TempDir()
	if pid, err := owned.Owner(folder); pid != os.Getpid() || err != nil || filepath.Dir(folder) != before {
		t.Errorf("it is %s, of %d, %v", folder, pid, err)
	}
	removeAgain, err := owned.Temporary("again")
	if err != nil || os.TempDir() != folder {
		t.Errorf("within it, it is %s, %v", os.TempDir(), err)
	}
	if err := errors.Join(removeAgain(), remove()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); os.TempDir() != before || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after it, it is %s, and %s is there: %v", os.TempDir(), folder, err)
	}
}

func write(t *testing.T, folder, owner string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, ".owner"), []byte(owner), 0o600); err != nil {
		t.Fatal(err)
	}
}
