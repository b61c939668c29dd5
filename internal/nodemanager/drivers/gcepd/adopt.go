package gcepd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Adopt takes over the disks that agents of the previous layout mounted for pods, in
// <folder>/<volume>. It stages each where stagingOf, which makes the directory, says. Pods keep
// what they have mounted. A folder of the previous layout goes once nothing leads to it. If a
// crash cuts Adopt off, the next call finishes it. It returns an error while a folder is left:
// what isn't known to be staged must not be mounted, checked or formatted.
func (s *Driver) Adopt(stagingOf func(mounting.Adopted) (string, error)) error {
	s.adopting.Lock()
	defer s.adopting.Unlock()
	earlier, err := foldersIn(s.Earlier)
	if err != nil {
		return err
	}
	var failed []error
	for _, each := range earlier {
		each.system, each.node = filepath.Join(each.dir, "mount"), filepath.Join(each.dir, "device")
		if err := s.adopt(each, stagingOf); err != nil {
			failed = append(failed, fmt.Errorf("taking over %s, which an agent of an earlier version mounted: %w", each.dir, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return volumes.RemoveEmptyDir(s.Earlier)
}

func (s *Driver) adopt(earlier diskFolder, stagingOf func(mounting.Adopted) (string, error)) error {
	record, err := earlier.record()
	if err != nil {
		return err
	}
	if record == nil {
		return earlier.remove()
	}
	staging, err := stagingOf(mounting.Adopted{Handle: record.Handle, Volume: filepath.Base(earlier.dir)})
	if err != nil {
		return err
	}
	targets, err := s.earlierTargets(earlier, *record)
	if err != nil {
		return err
	}
	folder, err := s.recordStaged(stagedDisk{Handle: record.Handle, Staging: staging, Targets: targets}, *record)
	if err != nil {
		return err
	}
	// Rename, never copy: a copy that stays behind could have a file system that holds data made
	// again.
	if err := os.Rename(earlier.halfFile(), folder.halfFile()); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("taking over that its file system isn't made yet: %w", err)
	}
	if err := s.bindEarlier(earlier, folder.diskFolder, record.Block); err != nil {
		return err
	}
	there, err := record.Disk.IsThere()
	if err != nil {
		return err
	}
	if err := s.unmountBelow(earlier.dir, !there); err != nil {
		return err
	}
	return earlier.remove()
}

// bindEarlier mounts what is mounted in a folder of the previous layout at the staging path, too.
func (s *Driver) bindEarlier(earlier, folder diskFolder, block bool) error {
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	from, to, bind := earlier.system, folder.system, volumes.BindExactly
	if block {
		from, to, bind = earlier.node, folder.node, volumes.BindFileExactly
	}
	point, mounted := table.At(from)
	if !mounted {
		return nil
	}
	source, err := os.OpenFile(from, mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	// An open file can't be unmounted.
	defer source.Close()
	return bind(s.Mounter, source, to, point.Access)
}

// earlierTargets returns where pods have what is mounted in a folder of the previous layout. The
// names of the pods' directories lead to it: another disk may have the number of one that is
// gone.
func (s *Driver) earlierTargets(earlier diskFolder, record diskRecord) ([]string, error) {
	table, err := s.Mounter.Table()
	if err != nil {
		return nil, err
	}
	inPod := "/" + volumes.DirName(mounting.PluginName) + "/" + filepath.Base(earlier.dir) + "/"
	var targets []string
	for _, point := range table.Below(filepath.Dir(s.Earlier)) {
		if strings.Contains(point.Path+"/", inPod) && record.isMountedAt(point) {
			targets = append(targets, point.Path)
		}
	}
	return targets, nil
}

// isMountedAt reports whether a mount is of the disk, or of its device.
func (r diskRecord) isMountedAt(point mount.Point) bool {
	if r.Block {
		return mounting.NumberAt(point.Path) == r.Disk.Number
	}
	return point.Device == r.Disk.Number
}

// remove removes what is left of a folder of the previous layout. Nothing may be mounted there.
func (p diskFolder) remove() error {
	if err := volumes.RemoveEmptyDir(p.system); err != nil {
		return err
	}
	return p.forget(p.node)
}
