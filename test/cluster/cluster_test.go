package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/mount"
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
		if err := (mount.Kernel{}).Bind(source, folder.AgentRoot(), mount.ReadWrite); err != nil {
			t.Fatal(err)
		}
		expectRemoved(t, folder)
		if _, err := os.Stat(precious); err != nil {
			t.Errorf("what was mounted in it: %v", err)
		}
	})
}

func TestProgramIsReadyKilledAndStartedAgain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	program := newProgram(t, "echo started; exec sleep 100")
	program.probe = server.URL
	for life := range 2 {
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		if err := program.AwaitReady(t.Context()); err != nil {
			t.Errorf("life %d: %v", life, err)
		}
		if err := program.Kill(); err != nil {
			t.Errorf("killing life %d: %v", life, err)
		}
		<-program.Ended()
	}
	if log := Tail(program.LogFile, 3); !strings.HasPrefix("started\nstarted", log) {
		t.Errorf("the log of both lives is %q", log)
	}
}

func TestAProgramThatEndsIsNotWaitedFor(t *testing.T) {
	program := newProgram(t, "echo no such luck; exit 3")
	program.probe = "http://127.0.0.1:1/readyz"
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := program.AwaitReady(ctx)
	if ctx.Err() != nil {
		t.Error("it was waited for until the end of time")
	}
	for _, part := range []string{"exit status 3", "no such luck", program.LogFile} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
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

func newProgram(t *testing.T, script string) *Program {
	t.Helper()
	program := &Program{
		Name: "sample", LogFile: filepath.Join(t.TempDir(), "log"),
		path: "/bin/sh", arguments: []string{"-c", script},
	}
	t.Cleanup(func() { _ = program.Kill() })
	return program
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
