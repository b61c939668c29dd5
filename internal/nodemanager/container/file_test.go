package container_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/nodemanager/container"
)

func TestADescriptionIsWrittenAtOnceAndOnlyIfItIsNew(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	dir := filepath.Join(t.TempDir(), "containers", "main")
	path := filepath.Join(dir, container.FileName)
	if err := container.Write(dir, container.Description{AdditionalGids: []uint32{1}}); err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(path)
	if err != nil || first.Mode() != 0o640 {
		t.Fatalf("it has mode %v (%v)", first.Mode(), err)
	}
	// What a crash left of a later one.
	if err := os.WriteFile(filepath.Join(dir, ".mounts.json.new"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := container.Write(dir, container.Description{AdditionalGids: []uint32{1}}); err != nil {
		t.Fatal(err)
	}
	if same, err := os.Stat(path); err != nil || !os.SameFile(first, same) {
		t.Errorf("it was written again (%v)", err)
	}
	if err := container.Write(dir, container.Description{AdditionalGids: []uint32{2}}); err != nil {
		t.Fatal(err)
	}
	if other, err := os.Stat(path); err != nil || os.SameFile(first, other) || other.Mode() != 0o640 {
		t.Errorf("a new one wasn't written beside it (%v)", err)
	}
	for range 2 {
		if err := container.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnyOtherFileStays(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "termination-log")
	err := errors.Join(os.WriteFile(kept, nil, 0o600), container.Write(dir, container.Description{}), container.Withdraw(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, container.FileName)); !os.IsNotExist(err) {
		t.Errorf("the description is still there (%v)", err)
	}
	if err := container.Remove(dir); err == nil {
		t.Error("nothing is said of the file")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
