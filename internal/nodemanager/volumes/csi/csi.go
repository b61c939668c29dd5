// Package csi serves volumes of source csi whose driver is one of Stowage's,
// without a CSI call: the node manager is their node side itself.
//
// Each driver says what a volume is on this node: a directory, which each pod gets a
// mount of, an image, or a disk that was attached to the node. Images and disks are
// shown once per node, as a file system that is mounted in a folder of the agent's own
// or as a block device, and from there in each pod's. What is remembered of an image is
// in the mount table; of a disk there is a record beside it. An image is never
// formatted, and a disk only if it is empty.
package csi

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// mountDir is the folder of a volume's directory that it is mounted on.
const mountDir = "mount"

// Driver knows where the volumes of one CSI driver are on this node.
type Driver interface {
	// Open opens the top directory of a volume or, if it is one, its image. The
	// caller closes it.
	Open(ctx context.Context, volume *corev1.PersistentVolume) (*os.File, error)
}

// Guard is a driver some of whose directories pods can't have at times.
type Guard interface {
	// Guards returns why no pod may have a volume now. It is asked after a pod got it,
	// and before the pod runs: whoever must not be disturbed says so first, and then
	// looks who has it.
	Guards(volume *corev1.PersistentVolume) error
}

// Drivers are the drivers that are served, by their names.
type Drivers map[string]Driver

func (d Drivers) has(spec volumes.Spec) bool {
	if spec.PersistentVolume == nil || spec.PersistentVolume.Spec.CSI == nil {
		return false
	}
	_, known := d[spec.PersistentVolume.Spec.CSI.Driver]
	return known
}

func (d Drivers) guards(volume *corev1.PersistentVolume) error {
	guard, can := d[volume.Spec.CSI.Driver].(Guard)
	if !can {
		return nil
	}
	return guard.Guards(volume)
}

func (d Drivers) open(ctx context.Context, volume *corev1.PersistentVolume) (*os.File, error) {
	return d[volume.Spec.CSI.Driver].Open(ctx, volume)
}

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct{ sources }

var _ volumes.Grower = Plugin{}

// New returns the volume type, for volumes that pods see as directories.
func New(images *Images, drivers Drivers) Plugin {
	return Plugin{sources{images: images, drivers: drivers}}
}

// WithDisks returns a volume type that serves disks, too.
func (p Plugin) WithDisks(disks *Disks) Plugin {
	p.disks = disks
	return p
}

// CanHandle implements volumes.Plugin.
func (p Plugin) CanHandle(spec volumes.Spec) bool { return !spec.IsBlock() && p.has(spec) }

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return filepath.Join(dir, mountDir) }

// IsPublished implements volumes.Plugin.
func (p Plugin) IsPublished(table mount.Table, spec volumes.Spec, dir string) (bool, error) {
	if !table.IsMountPoint(p.Path(dir)) {
		return false, nil
	}
	if p.disks.Serves(spec.PersistentVolume) {
		return p.disks.isShown(table, spec)
	}
	place := p.images.at(spec.Name())
	if place.lacks(table) {
		return false, nil
	}
	return true, place.check(table)
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	if p.disks.Serves(spec.PersistentVolume) {
		// First, so that whatever a crash leaves of the rest is found by Unpublish.
		if err := os.MkdirAll(p.Path(dir), mountPointMode); err != nil {
			return err
		}
		return p.disks.publish(ctx, spec, p.Path(dir))
	}
	source, err := p.drivers.open(ctx, spec.PersistentVolume)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return p.publishDirectory(ctx, source, spec, dir)
	}
	// First, so that whatever a crash leaves of the rest is found by Unpublish.
	if err := os.MkdirAll(p.Path(dir), mountPointMode); err != nil {
		return err
	}
	return p.images.publish(ctx, source, spec, p.Path(dir))
}

// publishDirectory makes a directory visible in a pod's.
func (p Plugin) publishDirectory(ctx context.Context, source *os.File, spec volumes.Spec, dir string) error {
	if err := p.giveDirectory(ctx, source, spec, dir); err != nil {
		return err
	}
	if err := volumes.Bind(p.images.mounter, source, p.Path(dir), spec.Access); err != nil {
		return err
	}
	if err := p.drivers.guards(spec.PersistentVolume); err != nil {
		return errors.Join(err, volumes.Unbind(p.images.mounter, p.Path(dir), dir))
	}
	return nil
}

// Unpublish implements volumes.Plugin.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	if err := p.images.noteAgain(filepath.Base(dir), p.Path(dir)); err != nil {
		return err
	}
	if err := p.takeFromPod(ctx, dir); err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(filepath.Join(dir, givenDir)); err != nil {
		return err
	}
	return volumes.Unbind(p.images.mounter, p.Path(dir), dir)
}

// CanGrow implements volumes.Grower.
func (p Plugin) CanGrow(table mount.Table, volume *corev1.PersistentVolume) bool {
	if p.disks.Serves(volume) {
		return p.disks.canGrow(table, volume.Name)
	}
	staged, mounted := table.At(p.images.at(volume.Name).mount())
	return mounted && staged.Access == mount.ReadWrite
}
