package inlinenfs_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/mount/remote"
)

var errCut = errors.New("cut off")

// dying is a kernel whose caller dies before, or just after, its n-th call: after that, it
// does nothing any more.
type dying struct {
	mounttest.Servers
	left  int
	after bool
}

func (d *dying) do(call func() error) error {
	d.left--
	if d.left > 0 {
		return call()
	}
	if d.left == 0 && d.after {
		if err := call(); err != nil {
			return err
		}
	}
	return errCut
}

func (d *dying) NFS(ctx context.Context, share remote.NFS, target string) error {
	return d.do(func() error { return d.Servers.NFS(ctx, share, target) })
}

func (d *dying) BindMount(ctx context.Context, source, target string, access mount.Access) error {
	return d.do(func() error { return d.Servers.BindMount(ctx, source, target, access) })
}

func (d *dying) Unbind(ctx context.Context, path string) error {
	return d.do(func() error { return d.Servers.Unbind(ctx, path) })
}

func (d *dying) Unmount(ctx context.Context, path string) (done <-chan struct{}, err error) {
	over := make(chan struct{})
	close(over)
	return over, d.do(func() error {
		_, err := d.Servers.Unmount(ctx, path)
		return err
	})
}

func (d *dying) MakeFolder(ctx context.Context, base string, folder remote.Folder) error {
	return d.do(func() error { return d.Servers.MakeFolder(ctx, base, folder) })
}

func (d *dying) RemoveFolder(ctx context.Context, base string, folder remote.Folder) error {
	return d.do(func() error { return d.Servers.RemoveFolder(ctx, base, folder) })
}

// eachCrash runs work on fresh nodes, cut off before or after each of its calls, until it
// isn't; then it runs look on a restarted agent, which leaves nothing behind.
func eachCrash(t *testing.T, prepare, work func(*node) error, look func(*testing.T, *node)) {
	t.Helper()
	for _, after := range []bool{false, true} {
		for number, cut := 1, true; cut; number++ {
			n := newNode(t)
			if err := prepare(n); err != nil {
				t.Fatal(err)
			}
			n.restart(t, &dying{n.servers, number, after})
			err := work(n)
			if cut = errors.Is(err, errCut); err != nil && !cut {
				t.Fatal(err)
			}
			n.restart(t, n.servers)
			look(t, n)
			n.mustBeClean(t)
		}
	}
}

//proves:inline/crash
func TestAPublishInterruptedAnywhereIsFinishedOrUndone(t *testing.T) {
	nothing := func(*node) error { return nil }
	publish := func(n *node) error { return n.publish(t.Context(), "pod-1") }
	t.Run("undone, without the backend", func(t *testing.T) {
		eachCrash(t, nothing, publish, func(t *testing.T, n *node) {
			n.backend = nil
			n.mustUnpublish(t, "pod-1")
		})
	})
	t.Run("finished", func(t *testing.T) {
		eachCrash(t, nothing, publish, func(t *testing.T, n *node) {
			n.mustPublish(t, "pod-1")
			n.write(t, "pod-1", "hello")
			n.mustUnpublish(t, "pod-1")
		})
	})
}

//proves:inline/crash
func TestAnUnpublishInterruptedAnywhereIsFinished(t *testing.T) {
	prepare := func(n *node) error {
		if err := n.publish(t.Context(), "pod-1"); err != nil {
			return err
		}
		return os.WriteFile(n.plugin.Path(n.at("pod-1"))+"/file", []byte("hello"), 0o600)
	}
	work := func(n *node) error { return n.plugin.Unpublish(t.Context(), n.at("pod-1")) }
	eachCrash(t, prepare, work, func(t *testing.T, n *node) { n.mustUnpublish(t, "pod-1") })
}

func TestACrashBesideTheRecordLeavesNothing(t *testing.T) {
	crashes := map[string]func(n *node) error{
		"with it":         func(*node) error { return nil },
		"with half of it": func(n *node) error { return os.Rename(n.recordOf("pod-1"), n.recordOf("pod-1")+".new") },
		"without it":      func(n *node) error { return os.Remove(n.recordOf("pod-1")) },
	}
	for name, crash := range crashes {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			// The share isn't mounted even once.
			n.restart(t, &dying{n.servers, 1, false})
			if err := n.publish(t.Context(), "pod-1"); !errors.Is(err, errCut) {
				t.Fatal(err)
			}
			if err := crash(n); err != nil {
				t.Fatal(err)
			}
			n.backend = nil
			n.restart(t, n.servers)
			n.mustUnpublish(t, "pod-1")
			n.mustBeClean(t)
		})
	}
}
