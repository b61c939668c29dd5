package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
)

func TestRemove(t *testing.T) {
	t.Run("removes everything", func(t *testing.T) {
		folder := newFolder(t)
		if err := os.WriteFile(filepath.Join(folder.Disks(), "data"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		expectRemoved(t, folder)
	})
	t.Run("refuses while the cluster runs", func(t *testing.T) {
		folder := newFolder(t)
		lock, err := folder.Lock()
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if err := Remove(t.Context(), folder.Root()); !errors.Is(err, ErrRunning) {
			t.Errorf("got %v, want ErrRunning", err)
		}
	})
	t.Run("is content with nothing", func(t *testing.T) {
		if err := Remove(t.Context(), filepath.Join(t.TempDir(), "nothing")); err != nil {
			t.Error(err)
		}
	})
	t.Run("unmounts first and leaves what was mounted", func(t *testing.T) {
		if err := (mount.Kernel{}).Check(); err != nil {
			t.Skip("needs root: it mounts:", err)
		}
		folder := newFolder(t)
		precious := filepath.Join(t.TempDir(), "precious")
		if err := os.Mkdir(precious, 0o700); err != nil {
			t.Fatal(err)
		}
		source, err := os.Open(filepath.Dir(precious))
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		if err := (mount.Kernel{}).Bind(source, folder.AgentRoot(NodeName), mount.ReadWrite); err != nil {
			t.Fatal(err)
		}
		expectRemoved(t, folder)
		if _, err := os.Stat(precious); err != nil {
			t.Errorf("what was mounted in it: %v", err)
		}
	})
}

func TestRemoveNamesTheProcessThatStandsInAMount(t *testing.T) {
	if err := (mount.Kernel{}).Check(); err != nil {
		t.Skip("needs root: it mounts:", err)
	}
	folder := newFolder(t)
	source, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if err := (mount.Kernel{}).Bind(source, folder.AgentRoot(NodeName), mount.ReadWrite); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "1000")
	child.Dir = folder.AgentRoot(NodeName)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	err = Remove(t.Context(), folder.Root())
	_, _ = child.Process.Kill(), child.Wait()
	want := fmt.Sprintf("process %d (\"sleep 1000\") is in the folder %s: leave it, or end the process", child.Process.Pid, folder.AgentRoot(NodeName))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}
	expectRemoved(t, folder)
}

func expectRemoved(t *testing.T, folder Folder) {
	t.Helper()
	if err := Remove(t.Context(), folder.Root()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder.Root()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}
