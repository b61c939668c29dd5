package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFolderIsLockedOnce(t *testing.T) {
	folder := newFolder(t)
	lock, err := folder.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Lock(); !errors.Is(err, ErrRunning) {
		t.Errorf("the second lock: got %v, want ErrRunning", err)
	}
	lock.Close()
	again, err := folder.Lock()
	if err != nil {
		t.Fatalf("locking after the first was closed: %v", err)
	}
	again.Close()
}

func TestFolderRefusesWhatIsNoCluster(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFolder(dir); !errors.Is(err, ErrForeign) {
		t.Errorf("using it: got %v, want ErrForeign", err)
	}
	if err := Remove(t.Context(), dir); !errors.Is(err, ErrForeign) {
		t.Errorf("removing it: got %v, want ErrForeign", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("what was in it: %v", err)
	}
}

func TestPortsAreRemembered(t *testing.T) {
	folder := newFolder(t)
	first, err := folder.ports()
	if err != nil {
		t.Fatal(err)
	}
	second, err := folder.ports()
	if err != nil {
		t.Fatal(err)
	}
	if first != second || first.APIServer == first.Etcd {
		t.Errorf("got %+v, then %+v", first, second)
	}
}

func newFolder(t *testing.T) Folder {
	t.Helper()
	folder, err := NewFolder(filepath.Join(t.TempDir(), "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
