// Package mounting contains the steps of staging and publishing that drivers of file systems on
// devices share. These are options, checks, growth, and the bind for a pod. It keeps no state,
// and finds no device.
package mounting

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// PublishStaged binds the staged file system or directory at target.
func PublishStaged(mounter mount.Mounter, spec volumes.Spec, staging, target string) error {
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(staging)
	if !mounted {
		return fmt.Errorf("publishing volume %s: nothing is mounted at %s (if it was unmounted by hand, delete the pods of this node that use the volume): %w",
			spec.Name(), staging, volumes.ErrNotStaged)
	}
	if err := RefuseSecondPod(spec, table.IsMountPoint(target), usedByOthers(table, staged, target)); err != nil {
		return err
	}
	source, err := os.OpenFile(staging, OpenOnly, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	access := spec.Access
	if staged.Access == mount.ReadOnly {
		access = mount.ReadOnly
	}
	return volumes.BindExactly(mounter, source, target, access)
}

// CheckStagedAs returns volumes.ErrOtherVolume if a volume is staged with another access than it
// is to have.
func CheckStagedAs(mounter mount.Mounter, wanted mount.Access, staging string) error {
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	if staged, _ := table.At(staging); staged.Access != wanted {
		return fmt.Errorf("staging at %s: %w", staging, volumes.ErrOtherVolume)
	}
	return nil
}

// RefuseUsed returns volumes.ErrInUse if what is mounted at a point is mounted elsewhere, too.
func RefuseUsed(table mount.Table, staged mount.Point) error {
	for _, point := range usedBeside(table, staged) {
		return fmt.Errorf("%w: it is mounted at %s", volumes.ErrInUse, point.Path)
	}
	return nil
}

// usedBeside returns where else what is mounted at a point is mounted, wholly or in part.
func usedBeside(table mount.Table, staged mount.Point) []mount.Point {
	return slices.DeleteFunc(table.Shows(staged.Device, staged.Root), func(point mount.Point) bool { return point.Path == staged.Path })
}

// usedByOthers is usedBeside without the subPath mounts of the pod that sees the volume at
// target. If a volume was unmounted by hand, those may still be there.
func usedByOthers(table mount.Table, staged mount.Point, target string) []mount.Point {
	pod := PodOf(target)
	return slices.DeleteFunc(usedBeside(table, staged), func(point mount.Point) bool {
		return pod != "" && strings.HasPrefix(point.Path, filepath.Join(pod, "volume-subpaths")+"/")
	})
}

// PodOf returns the directory of the pod that sees a volume at target,
// <pods>/<uid>/volumes/<type>/<volume>/mount; "" if target isn't in one.
func PodOf(target string) string {
	folder := filepath.Dir(filepath.Dir(filepath.Dir(target)))
	if filepath.Base(folder) != "volumes" {
		return ""
	}
	return filepath.Dir(folder)
}

// RefuseSecondPod returns volumes.ErrInUse if a volume that one pod alone may have would become
// visible to a second one. The pod that has it already may see parts of it elsewhere, too.
func RefuseSecondPod(spec volumes.Spec, there bool, users []mount.Point) error {
	one := slices.Contains(spec.PersistentVolume.Spec.AccessModes, corev1.ReadWriteOncePod)
	if !one || there || len(users) == 0 {
		return nil
	}
	return fmt.Errorf("%w: it is for one pod, and mounted at %s", volumes.ErrInUse, users[0].Path)
}

// DeviceAccess returns the access that a pod has to a device.
func DeviceAccess(spec volumes.Spec) mount.Access {
	if IsForReadersOnly(spec.PersistentVolume) {
		return mount.ReadOnly
	}
	return spec.Access
}
