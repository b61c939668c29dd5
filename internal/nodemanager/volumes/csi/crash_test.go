package csi_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

var errCut = errors.New("cut off")

// dying is a kernel whose caller dies before, or just after, its n-th change.
type dying struct {
	mount.Kernel
	left  int
	after bool
}

func (d *dying) change(call func() error) error {
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

func (d *dying) Bind(source *os.File, target string, access mount.Access) error {
	return d.change(func() error { return d.Kernel.Bind(source, target, access) })
}

func (d *dying) FileSystem(system mount.FileSystem, target string) error {
	return d.change(func() error { return d.Kernel.FileSystem(system, target) })
}

func (d *dying) Unmount(path string) error {
	return d.change(func() error { return d.Kernel.Unmount(path) })
}

// kinds are the ways in which a pod sees an image.
var kinds = map[string]func(*volumes.Spec){"as a file system": func(*volumes.Spec) {}, "as a device": asDevice}

// eachCrash runs work on fresh nodes, and cuts it off before or after each of its changes to the
// mount table, until work completes. Then it runs look on a restarted agent.
func eachCrash(t *testing.T, prepare, work func(*node) error, look func(*testing.T, *node)) {
	t.Helper()
	for _, after := range []bool{false, true} {
		for number, cut := 1, true; cut; number++ {
			n := newNode(t, "ext4", imageBytes)
			if err := prepare(n); err != nil {
				t.Fatal(err)
			}
			n.mounter = &dying{left: number, after: after}
			n.restart(t)
			err := work(n)
			if cut = errors.Is(err, errCut); err != nil && !cut {
				t.Fatal(err)
			}
			n.mounter = mount.Kernel{}
			n.restart(t)
			look(t, n)
			n.mustBeClean(t)
		}
	}
}

func nothing(*node) error { return nil }

//proves:csi/crash
func TestAPublishInterruptedAnywhereIsFinishedOrUndone(t *testing.T) {
	for name, kind := range kinds {
		publish := func(t *testing.T) func(*node) error {
			return func(n *node) error {
				spec := n.spec(kind)
				return n.pluginFor(spec).Publish(t.Context(), spec, n.at(t, "pod"))
			}
		}
		t.Run(name+" undone", func(t *testing.T) {
			eachCrash(t, nothing, publish(t), func(t *testing.T, n *node) { n.unpublish(t, "pod", n.spec(kind)) })
		})
		t.Run(name+" finished", func(t *testing.T) {
			eachCrash(t, nothing, publish(t), func(t *testing.T, n *node) {
				n.publish(t, "pod", n.spec(kind))
				if there, err := n.pluginFor(n.spec(kind)).IsPublished(n.table(t), n.spec(kind), n.at(t, "pod")); !there || err != nil {
					t.Errorf("it isn't there (%v)", err)
				}
				n.unpublish(t, "pod", n.spec(kind))
			})
		})
	}
}

//proves:csi/crash
func TestAnUnpublishInterruptedAnywhereIsFinished(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			prepare := func(n *node) error {
				return n.pluginFor(n.spec(kind)).Publish(t.Context(), n.spec(kind), n.at(t, "pod"))
			}
			work := func(n *node) error {
				return n.pluginFor(n.spec(kind)).Unpublish(t.Context(), n.at(t, "pod"))
			}
			eachCrash(t, prepare, work, func(t *testing.T, n *node) { n.unpublish(t, "pod", n.spec(kind)) })
		})
	}
}
