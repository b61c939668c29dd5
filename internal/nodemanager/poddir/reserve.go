package poddir

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Reserve makes the directory of a volume, or the file that its device is mounted on.
func (t Tree) Reserve(uid types.UID, at Location) error {
	if err := t.EnsureParent(uid, at); err != nil {
		return err
	}
	dir := t.VolumeDir(uid, at)
	if at.Block {
		return volumes.EnsureFile(dir)
	}
	if err := os.Mkdir(dir, DirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("reserving volume %s for the pod: %w", at.Name, err)
	}
	return nil
}

// ReservedBy finds another pod that has a volume; "" if none has. Pods for which ignored is
// true don't count.
func (t Tree) ReservedBy(uid types.UID, at Location, ignored func(types.UID) bool) (types.UID, error) {
	pods, err := t.Pods()
	if err != nil {
		return "", err
	}
	for _, other := range pods {
		has, err := t.HasVolume(other, at)
		if err != nil {
			return "", fmt.Errorf("looking for pods that have volume %s: %w", at.Name, err)
		}
		if has && other != uid && !ignored(other) {
			return other, nil
		}
	}
	return "", nil
}
