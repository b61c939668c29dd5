package inlinenfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/remote"
)

//proves:inline/folder
func TestAPodHasAFolderOfItsOwnOnTheShareAsLongAsItIsThere(t *testing.T) {
	n := newNode(t)
	n.mustPublish(t, "pod-1")
	n.mustPublish(t, "pod-2")
	if onServer := n.write(t, "pod-1", "hello"); onServer != "hello" {
		t.Errorf("the server has %q", onServer)
	}
	if names := namesIn(t, n.plugin.Path(n.at("pod-2"))); len(names) > 0 {
		t.Errorf("another pod sees %v", names)
	}
	n.mustUnpublish(t, "pod-1")
	if _, err := os.Lstat(n.folderOf("pod-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
	n.write(t, "pod-2", "still here")
	n.mustUnpublish(t, "pod-2")
	n.mustUnpublish(t, "pod-2")
	n.mustBeClean(t)
}

//proves:inline/folder
func TestTheFolderHasTheOwnerAndTheModeThatTheBackendSays(t *testing.T) {
	n := newNode(t)
	n.mustPublish(t, "pod-1")
	info, err := os.Lstat(n.folderOf("pod-1"))
	if err != nil {
		t.Fatal(err)
	}
	of := info.Sys().(*syscall.Stat_t)
	if info.Mode() != os.ModeDir|os.ModeSetgid|0o775 || of.Uid != 1000 || of.Gid != 2000 {
		t.Errorf("it has %s, user %d, group %d", info.Mode(), of.Uid, of.Gid)
	}
}

//proves:inline/readOnly
func TestAPodThatOnlyReadsCannotWrite(t *testing.T) {
	n := newNode(t)
	spec := n.spec("pod-1")
	spec.Access = mount.ReadOnly
	if err := errors.Join(os.MkdirAll(filepath.Dir(n.at("pod-1")), 0o750), n.plugin.Publish(t.Context(), spec, n.at("pod-1"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.plugin.Path(n.at("pod-1")), "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing gave %v", err)
	}
}

//proves:inline/record
func TestTheRecordDecidesWhateverBecomesOfTheBackend(t *testing.T) {
	changes := map[string]func(*stowagev1alpha1.StorageBackend) *stowagev1alpha1.StorageBackend{
		"it is another server's now": func(backend *stowagev1alpha1.StorageBackend) *stowagev1alpha1.StorageBackend {
			backend.Spec.NFS.Server, backend.Spec.NFS.Path = "192.0.2.9", "/other"
			return backend
		},
		"it is gone, or allows it no more": func(*stowagev1alpha1.StorageBackend) *stowagev1alpha1.StorageBackend { return nil },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.mustPublish(t, "pod-1")
			n.write(t, "pod-1", "hello")
			n.backend = change(n.backend)
			// As after a reboot.
			if err := mount.UnmountBelow(mount.Kernel{}, n.dir); err != nil {
				t.Fatal(err)
			}
			n.restart(t, n.servers)

			n.mustPublish(t, "pod-1")
			if got := n.write(t, "pod-1", "again"); got != "again" {
				t.Errorf("the server has %q", got)
			}
			n.mustUnpublish(t, "pod-1")
			n.mustBeClean(t)
		})
	}
}

func TestWithoutABackendThatAllowsItNothingIsMade(t *testing.T) {
	n := newNode(t)
	n.backend = nil
	if err := n.publish(t.Context(), "pod-1"); err == nil || !strings.Contains(err.Error(), "doesn't allow it any more") {
		t.Errorf("got %v", err)
	}
	if names := namesIn(t, n.onServer()); len(names) != 1 {
		t.Errorf("the server has %v", names)
	}
	n.mustUnpublish(t, "pod-1")
	n.mustBeClean(t)
}

//proves:inline/crash
func TestADamagedRecordIsNamedAndNothingIsDoneOnItsWord(t *testing.T) {
	for name, content := range map[string]string{
		"half of it":       `{"server":"192.0.2.7","path":"/srv/sha`,
		"nothing":          "",
		"another volume's": `{"server":"192.0.2.7","path":"/srv/share","mountOptions":"","folder":"pod-2-scratch","uid":0,"gid":0,"mode":"0770"}`,
		"a way out":        `{"server":"192.0.2.7","path":"/srv/share","mountOptions":"","folder":"../precious","uid":0,"gid":0,"mode":"0770"}`,
		"no server":        `{"path":"/srv/share","mountOptions":"","folder":"pod-1-scratch","uid":0,"gid":0,"mode":"0770"}`,
		"more than one":    `{"server":"192.0.2.7","path":"/srv/share","folder":"pod-1-scratch","mode":"0770"}{}`,
		"what is unknown":  `{"server":"192.0.2.7","path":"/srv/share","folder":"pod-1-scratch","mode":"0770","also":"/"}`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.mustPublish(t, "pod-1")
			n.mustPublish(t, "pod-2")
			n.write(t, "pod-1", "hello")
			if err := os.WriteFile(n.recordOf("pod-1"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{n.plugin.Unpublish(t.Context(), n.at("pod-1")), n.publish(t.Context(), "pod-1")} {
				if err == nil || !strings.Contains(err.Error(), n.recordOf("pod-1")+" is damaged") {
					t.Errorf("got %v", err)
				}
			}
			if got := n.reads(t, "pod-1"); got != "hello" {
				t.Errorf("the server has %q", got)
			}
			n.write(t, "pod-2", "hello")

			// What the error says to do.
			if err := errors.Join(os.RemoveAll(n.folderOf("pod-1")), os.Remove(n.recordOf("pod-1"))); err != nil {
				t.Fatal(err)
			}
			n.mustUnpublish(t, "pod-1")
			n.mustUnpublish(t, "pod-2")
			n.mustBeClean(t)
		})
	}
}

// refusing is a server that doesn't do what it is asked.
type refusing struct {
	mounttest.Servers
	err error
}

func (r refusing) MakeFolder(context.Context, string, remote.Folder) error   { return r.err }
func (r refusing) RemoveFolder(context.Context, string, remote.Folder) error { return r.err }

//proves:inline/gone
func TestAServersErrorHasAdviceAndTheRecordStaysUntilTheFolderIsGone(t *testing.T) {
	for says, err := range map[string]error{"doesn't answer": remote.ErrSilent, "no_root_squash": unix.EPERM} {
		t.Run(says, func(t *testing.T) {
			n := newNode(t)
			n.restart(t, refusing{n.servers, err})
			if err := n.publish(t.Context(), "pod-1"); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("making it: %v", err)
			}
			n.restart(t, n.servers)
			n.mustPublish(t, "pod-1")
			n.restart(t, refusing{n.servers, err})
			for range 2 {
				err := n.plugin.Unpublish(t.Context(), n.at("pod-1"))
				if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "remove the record "+n.recordOf("pod-1")) {
					t.Errorf("removing it: %v", err)
				}
			}
			n.restart(t, n.servers)
			n.mustUnpublish(t, "pod-1")
			n.mustBeClean(t)
		})
	}
}

//proves:inline/gone
func TestAPodOfALostShareCanBeTornDown(t *testing.T) {
	n := newNode(t)
	n.mustPublish(t, "pod-1")
	gone := n.onServer() + "-gone"
	if err := os.Rename(n.onServer(), gone); err != nil {
		t.Fatal(err)
	}
	if err := n.plugin.Unpublish(t.Context(), n.at("pod-1")); err == nil || !strings.Contains(err.Error(), "remove the record") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(n.recordOf("pod-1")); err != nil {
		t.Fatal(err)
	}
	n.mustUnpublish(t, "pod-1")
	if left := namesIn(t, filepath.Join(gone, ".stowage-inline")); len(left) != 1 {
		t.Errorf("on the server is %v", left)
	}
}

func TestAVolumeWithoutAValidFolderNameIsRefused(t *testing.T) {
	n := newNode(t)
	for _, name := range []string{"../precious", "", "a/b", ".", "a b"} {
		spec := n.spec("pod-1")
		spec.Pod.UID, spec.Volume.Name = "", name
		if err := n.plugin.Publish(t.Context(), spec, n.at("pod-1")); err == nil || !strings.Contains(err.Error(), "can't name a folder") {
			t.Errorf("%q gave %v", name, err)
		}
	}
	n.mustBeClean(t)
}
