package csi

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// givenDir is the folder of a volume's directory that it is mounted on while it is given
// to the group of the pod, which doesn't see it there.
const givenDir = "given"

// isGiven says whether a volume is given to its pod's group: the pod may write it, and no
// other node may.
func isGiven(spec volumes.Spec) bool {
	_, wanted := ownership.GroupOf(spec.Pod, spec.Access)
	return wanted && spec.Access == mount.ReadWrite && ownership.IsForOneNode(spec.PersistentVolume)
}

// give gives a volume to its pod's group, before the pod sees it.
func give(ctx context.Context, owner ownership.Owner, spec volumes.Spec, source *os.File) error {
	if !isGiven(spec) {
		return nil
	}
	return owner.ApplyFSGroup(ctx, spec.Pod, spec.Name(), source)
}

// giveDirectory gives away a directory while it is mounted for the pod, so that nobody
// copies it meanwhile: a copy would have some of its files as they were, under a top that
// says that all were given.
func (p Plugin) giveDirectory(ctx context.Context, source *os.File, spec volumes.Spec, dir string) error {
	if !isGiven(spec) {
		return nil
	}
	release, err := p.images.acquire(ctx, spec.Name())
	if err != nil {
		return err
	}
	defer release()
	at := filepath.Join(dir, givenDir)
	if err := volumes.Bind(p.images.mounter, source, at, mount.ReadWrite); err != nil {
		return err
	}
	err = p.drivers.guards(spec.PersistentVolume)
	if err == nil {
		err = give(ctx, p.images.owner, spec, source)
	}
	return errors.Join(err, volumes.Unbind(p.images.mounter, at, at))
}

// setLabel has a file system that one pod alone can use mounted with the SELinux label of
// that pod.
func setLabel(system *mount.FileSystem, owner ownership.Owner, spec volumes.Spec) {
	label := owner.LabelForOne(spec.Pod, spec.Volume.Name, spec.PersistentVolume)
	system.Settings = append(system.Settings, ownership.LabelSettings(label)...)
}
