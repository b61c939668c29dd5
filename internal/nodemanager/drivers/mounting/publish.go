// Package mounting has the steps of staging and publishing that drivers of file systems on
// devices share: options, checks, growth, and the bind for a pod. It keeps no state, and finds no
// device.
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

// PublishStaged makes the file system or directory that is staged visible at target.
func PublishStaged(mounter mount.Mounter, spec volumes.Spec, staging, target string) error {
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(staging)
	if !mounted {
		return fmt.Errorf("publishing volume %s: nothing is mounted at %s (if somebody unmounted it, delete the pods of this node that use the volume): %w",
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

// CheckStagedAs is volumes.ErrOtherVolume if what is staged may be used otherwise than the
// volume asks for.
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

// RefuseUsed is volumes.ErrInUse if what is mounted at a point is mounted elsewhere, too.
func RefuseUsed(table mount.Table, staged mount.Point) error {
	for _, point := range usedBeside(table, staged) {
		return fmt.Errorf("%w: it is mounted at %s", volumes.ErrInUse, point.Path)
	}
	return nil
}

// usedBeside is where else what is mounted at a point is mounted, wholly or in part.
func usedBeside(table mount.Table, staged mount.Point) []mount.Point {
	return slices.DeleteFunc(table.Shows(staged.Device, staged.Root), func(point mount.Point) bool { return point.Path == staged.Path })
}

// usedByOthers is where else it is mounted but for parts that containers of the pod asked for
// which sees it at target: of a volume that was unmounted by hand, they may be mounted still.
func usedByOthers(table mount.Table, staged mount.Point, target string) []mount.Point {
	pod := podOf(target)
	return slices.DeleteFunc(usedBeside(table, staged), func(point mount.Point) bool {
		return pod != "" && strings.HasPrefix(point.Path, filepath.Join(pod, "volume-subpaths")+"/")
	})
}

// podOf is the directory of the pod that sees a volume at target,
// <pods>/<uid>/volumes/<type>/<volume>/mount; "" if target isn't in one.
func podOf(target string) string {
	folder := filepath.Dir(filepath.Dir(filepath.Dir(target)))
	if filepath.Base(folder) != "volumes" {
		return ""
	}
	return filepath.Dir(folder)
}

// RefuseSecondPod is volumes.ErrInUse if a volume that one pod may have is to be shown to
// a second one. One that is there already may be shown in parts, too.
func RefuseSecondPod(spec volumes.Spec, there bool, users []mount.Point) error {
	one := slices.Contains(spec.PersistentVolume.Spec.AccessModes, corev1.ReadWriteOncePod)
	if !one || there || len(users) == 0 {
		return nil
	}
	return fmt.Errorf("%w: it is for one pod, and mounted at %s", volumes.ErrInUse, users[0].Path)
}

// DeviceAccess is what a pod may do with a device.
func DeviceAccess(spec volumes.Spec) mount.Access {
	if IsForReadersOnly(spec.PersistentVolume) {
		return mount.ReadOnly
	}
	return spec.Access
}
