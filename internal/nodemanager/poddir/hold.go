package poddir

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Hold makes the directory of a volume, or the file that its device is mounted on.
func (t Tree) Hold(uid types.UID, at Location) error {
	if err := t.EnsureParent(uid, at); err != nil {
		return err
	}
	dir := t.VolumeDir(uid, at)
	if at.Block {
		return volumes.EnsureFile(dir)
	}
	if err := os.Mkdir(dir, DirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("noting that the pod has volume %s: %w", at.Name, err)
	}
	return nil
}

// HolderBeside finds another pod that has a volume; "" if none has. Pods that are not to
// count are left out.
func (t Tree) HolderBeside(uid types.UID, at Location, leftOut func(types.UID) bool) (types.UID, error) {
	pods, err := t.Pods()
	if err != nil {
		return "", err
	}
	for _, other := range pods {
		has, err := t.HasVolume(other, at)
		if err != nil {
			return "", fmt.Errorf("looking for pods that have volume %s: %w", at.Name, err)
		}
		if has && other != uid && !leftOut(other) {
			return other, nil
		}
	}
	return "", nil
}
