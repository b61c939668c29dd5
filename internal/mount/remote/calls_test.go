package remote_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/remote"
)

// calls is patient enough for a busy machine.
var calls = remote.Calls{AnswerTimeout: time.Minute, UnmountTimeout: time.Minute, ForceTimeout: time.Minute}

// tmpfs mounts a file system in memory.
func tmpfs(t *testing.T, path string) {
	t.Helper()
	if err := (mount.Kernel{}).Tmpfs(path, mount.TmpfsOptions{Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
}

func TestAMountOfACallIsVisibleToAll(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	source, target := mounttest.MakeDir(t, dir, "source"), mounttest.MakeDir(t, dir, "target")
	mounttest.WriteFile(t, source, "file", "hello")

	if err := calls.BindMount(t.Context(), source, target, mount.ReadOnly); err != nil {
		t.Fatal(err)
	}
	mounttest.MustHold(t, filepath.Join(target, "file"), "hello")
	if err := os.WriteFile(filepath.Join(target, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gave %v", err)
	}
	if err := calls.Unbind(t.Context(), target); err != nil {
		t.Error(err)
	}
	mounttest.MustNotExist(t, filepath.Join(target, "file"))
}

func TestTheErrorOfACallIsTheKernels(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	err := calls.BindMount(t.Context(), filepath.Join(dir, "missing"), dir, mount.ReadWrite)
	if !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v", err)
	}
}

func TestAMountInUseIsNotDetachedFromAServerThatAnswers(t *testing.T) {
	mounttest.NeedsRoot(t)
	target := mounttest.TempDir(t)
	tmpfs(t, target)
	t.Cleanup(func() { mounttest.Unmount(t, target) })
	user, err := os.Create(filepath.Join(target, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()

	if err := calls.Unbind(t.Context(), target); !errors.Is(err, unix.EBUSY) {
		t.Errorf("Unbind gave %v", err)
	}
	done, err := calls.Unmount(t.Context(), target)
	if !errors.Is(err, unix.EBUSY) {
		t.Errorf("Unmount gave %v", err)
	}
	<-done
	if !mounttest.TableOf(t).IsMountPoint(target) {
		t.Error("it is gone")
	}
}

func TestAMountOfASilentServerIsDetachedAndThatIsReported(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, unmount := range map[string]func(remote.Calls, string) error{
		"the last": func(calls remote.Calls, path string) error {
			done, err := calls.Unmount(t.Context(), path)
			<-done
			return err
		},
		"one of several": func(calls remote.Calls, path string) error { return calls.Unbind(t.Context(), path) },
	} {
		t.Run(name, func(t *testing.T) {
			target := mounttest.TempDir(t)
			tmpfs(t, target)
			user, err := os.Create(filepath.Join(target, "file"))
			if err != nil {
				t.Fatal(err)
			}
			defer user.Close()
			// No server answers that fast.
			impatient := calls
			impatient.AnswerTimeout = 0

			if err := unmount(impatient, target); !errors.Is(err, remote.ErrDetached) {
				t.Errorf("got %v", err)
			}
			if mounttest.TableOf(t).IsMountPoint(target) {
				t.Error("it is still there")
			}
		})
	}
}

func TestACallThatTakesTooLongIsKilled(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := mounttest.TempDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := calls.BindMount(ctx, dir, dir, mount.ReadWrite); err != nil && !errors.Is(err, remote.ErrSilent) {
		t.Errorf("got %v", err)
	}
	if err := mount.UnmountBelow(mount.Kernel{}, dir); err != nil {
		t.Error(err)
	}
}

func TestAKernelWithoutAnNFSClientIsReported(t *testing.T) {
	mounttest.NeedsRoot(t)
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil || strings.Contains(string(known), "nfs") {
		t.Skip("this kernel has an NFS client: make e2e-nfs has one that hasn't")
	}
	share := remote.NFS{Server: "nfs.example.com", Address: netip.MustParseAddr("192.0.2.1"), Path: "/srv", Version: "4.2"}
	if err := calls.NFS(t.Context(), share, mounttest.TempDir(t)); !errors.Is(err, remote.ErrNoNFSClient) {
		t.Errorf("got %v", err)
	}
}
