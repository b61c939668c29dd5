package mount_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// tree is a directory whose mounts are shared, with one in it, and where it is bound.
type tree struct {
	source, inner, target string
}

// bindLinked binds a tree that goes on changing with its source.
func bindLinked(t *testing.T, propagation mount.Propagation) tree {
	t.Helper()
	source := newShared(t)
	// A directory with shared mounts, as the agent's own directory is on most hosts.
	bound := tree{source: source, inner: mounttest.MakeDir(t, source, "inner"), target: mounttest.MakeDir(t, newShared(t), "target")}
	mountTmpfs(t, bound.inner)
	mounttest.WriteFile(t, bound.inner, "file", "hello")
	options := mount.TreeOptions{Except: mounttest.TempDir(t), Propagation: propagation}
	if err := kernel.BindTree(mounttest.Open(t, source), bound.target, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mount.UnmountBelow(kernel, bound.target); err != nil {
			t.Error(err)
		}
	})
	mounttest.MustHold(t, filepath.Join(bound.target, "inner", "file"), "hello")
	return bound
}

func TestALaterMountAtTheSourcePropagatesToASlave(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, propagation := range map[string]mount.Propagation{"slave": mount.Slave, "shared": mount.Shared} {
		t.Run(name, func(t *testing.T) {
			bound := bindLinked(t, propagation)
			later := mounttest.MakeDir(t, bound.source, "later")

			mountTmpfs(t, later)
			mounttest.WriteFile(t, later, "file", "later")
			mounttest.MustHold(t, filepath.Join(bound.target, "later", "file"), "later")

			if err := mount.UnmountBelow(kernel, bound.inner); err != nil {
				t.Fatal(err)
			}
			if mounttest.TableOf(t).IsMountPoint(filepath.Join(bound.target, "inner")) {
				t.Error("what was unmounted at the source is still there")
			}
		})
	}
}

func TestAMountInATreePropagatesToItsSourceOnlyIfItIsShared(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, test := range map[string]struct {
		propagation mount.Propagation
		shows       bool
	}{"private": {mount.Private, false}, "slave": {mount.Slave, false}, "shared": {mount.Shared, true}} {
		t.Run(name, func(t *testing.T) {
			bound := bindLinked(t, test.propagation)
			own := mounttest.MakeDir(t, bound.target, "own")

			mountTmpfs(t, own)

			if shows := mounttest.TableOf(t).IsMountPoint(filepath.Join(bound.source, "own")); shows != test.shows {
				t.Errorf("it shows there: %v", shows)
			}
			if err := mount.UnmountBelow(kernel, filepath.Join(bound.source, "own")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestUnmountingATreeLeavesTheMountsOfItsSource(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, propagation := range map[string]mount.Propagation{"private": mount.Private, "slave": mount.Slave, "shared": mount.Shared} {
		t.Run(name, func(t *testing.T) {
			bound := bindLinked(t, propagation)
			later, own := mounttest.MakeDir(t, bound.source, "later", "below"), mounttest.MakeDir(t, bound.target, "own")
			mountTmpfs(t, filepath.Dir(later))
			mountTmpfs(t, mounttest.MakeDir(t, later))
			mountTmpfs(t, own)
			before := len(mounttest.TableOf(t).Below(bound.source))

			if err := mount.UnmountBelow(kernel, bound.target); err != nil {
				t.Fatal(err)
			}

			table := mounttest.TableOf(t)
			if after := table.Below(bound.source); len(after) != before {
				t.Errorf("of %d mounts at the source, %d are left: %+v", before, len(after), after)
			}
			if left := table.Below(bound.target); len(left) > 0 {
				t.Errorf("left: %+v", left)
			}
			mounttest.MustHold(t, filepath.Join(bound.inner, "file"), "hello")
		})
	}
}

func TestATreeIsGoneFromOtherMountNamespacesWithItsMountPoint(t *testing.T) {
	mounttest.NeedsRoot(t)
	for name, propagation := range map[string]mount.Propagation{"private": mount.Private, "slave": mount.Slave, "shared": mount.Shared} {
		t.Run(name, func(t *testing.T) {
			// What services see of the host.
			folder := newShared(t)
			table := otherNamespace(t)
			source, target := newShared(t), mounttest.MakeDir(t, folder, "target")
			mountTmpfs(t, mounttest.MakeDir(t, source, "inner"))
			options := mount.TreeOptions{Except: mounttest.TempDir(t), Propagation: propagation}
			if err := kernel.BindTree(mounttest.Open(t, source), target, options); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(table(), target+"/inner ") {
				t.Fatal("it doesn't show there")
			}

			if err := errors.Join(mount.UnmountBelow(kernel, target), os.Remove(target)); err != nil {
				t.Fatal(err)
			}

			if strings.Contains(table(), target) {
				t.Errorf("left there: %s", table())
			}
			if !mounttest.TableOf(t).IsMountPoint(filepath.Join(source, "inner")) {
				t.Error("the source's own mount is gone")
			}
		})
	}
}

// otherNamespace is the mount table of another process, which follows this one's.
func otherNamespace(t *testing.T) (table func() string) {
	t.Helper()
	other := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "slave", "sh", "-c", "echo ready; exec sleep 60")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return func() string {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", other.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
}

func TestATreeThatCannotBeMadePrivateIsNotUnmounted(t *testing.T) {
	mounttest.NeedsRoot(t)
	bound := bindLinked(t, mount.Shared)
	refused := errors.New("refused")
	if err := mount.UnmountBelow(inseparable{refused: refused}, bound.target); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if table := mounttest.TableOf(t); !table.IsMountPoint(bound.inner) || !table.IsMountPoint(filepath.Join(bound.target, "inner")) {
		t.Error("mounts are gone")
	}
}

// inseparable is a kernel that refuses to make mounts private.
type inseparable struct {
	mount.Kernel
	refused error
}

func (i inseparable) MakePrivate(string) error { return i.refused }

func TestATreeFollowsOnlyWhatIsShared(t *testing.T) {
	mounttest.NeedsRoot(t)
	source, target := mounttest.TempDir(t), mounttest.TempDir(t)
	mountTmpfs(t, source)
	bind := func(propagation mount.Propagation) error {
		return kernel.BindTree(mounttest.Open(t, source), target, mount.TreeOptions{Except: mounttest.TempDir(t), Propagation: propagation})
	}
	if err := unix.Mount("", source, "", unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	for _, propagation := range []mount.Propagation{mount.Slave, mount.Shared} {
		if err := bind(propagation); !errors.Is(err, mount.ErrNotShared) {
			t.Errorf("got %v", err)
		}
	}
	if mounttest.TableOf(t).IsMountPoint(target) {
		t.Error("it was mounted")
	}
}

func TestATreeWithTheFolderToLeaveOutCannotPropagate(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir, outer := newShared(t), newShared(t)
	agent, beside, alias := mounttest.MakeDir(t, dir, "agent"), mounttest.MakeDir(t, dir, "beside"), mounttest.MakeDir(t, outer, "alias")
	if err := unix.Mount(dir, alias, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	target := mounttest.MakeDir(t, agent, "target")
	for name, source := range map[string]string{
		"it holds the folder": dir, "it is the folder": agent, "it lies in the folder": mounttest.MakeDir(t, agent, "pods"),
		"it has another name": alias, "what holds the folder is mounted in it": outer,
	} {
		t.Run(name, func(t *testing.T) {
			options := mount.TreeOptions{Except: agent, Propagation: mount.Slave}
			if err := kernel.BindTree(mounttest.Open(t, source), target, options); !errors.Is(err, mount.ErrShows) {
				t.Errorf("got %v", err)
			}
		})
	}
	options := mount.TreeOptions{Except: agent, Propagation: mount.Slave}
	if err := kernel.BindTree(mounttest.Open(t, beside), target, options); err != nil {
		t.Error(err)
	}
	if err := mount.UnmountBelow(kernel, target); err != nil {
		t.Error(err)
	}
}
