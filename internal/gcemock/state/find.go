package state

import (
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// FindDisk finds the disk at a path. None is wire.NotFound.
func (s *Store) FindDisk(path string) (compute.Disk, error) {
	row, found := s.Disks.Get(path)
	if !found {
		return compute.Disk{}, wire.NotFound(path)
	}
	return row, nil
}

// SameDisk finds the disk that had a path when an operation was accepted: another may
// have its name by now.
func (s *Store) SameDisk(path string, id uint64) (compute.Disk, error) {
	row, err := s.FindDisk(path)
	if err == nil && row.Id != id {
		err = wire.NotFound(path)
	}
	return row, err
}

// FindReadyDisk finds a disk that something can be done with.
func (s *Store) FindReadyDisk(path string) (compute.Disk, error) {
	row, err := s.FindDisk(path)
	if err == nil && row.Status != StatusReady {
		err = wire.NotReady(path)
	}
	return row, err
}

// FindImage finds an image by its path, or the newest that is ready of a family, by the
// family's path.
func (s *Store) FindImage(path string) (newest compute.Image, found bool) {
	collection, family, isFamily := strings.Cut(path, "/family/")
	if !isFamily {
		return s.Images.Get(path)
	}
	for _, path := range s.Images.Below(collection) {
		row := s.Images.Rows[path]
		if row.Family == family && row.Status == StatusReady && row.CreationTimestamp >= newest.CreationTimestamp {
			newest, found = row, true
		}
	}
	return newest, found
}

// FindInstance finds the instance at a path. None is wire.NotFound.
func (s *Store) FindInstance(path string) (compute.Instance, error) {
	row, found := s.Instances.Get(path)
	if !found {
		return compute.Instance{}, wire.NotFound(path)
	}
	return row, nil
}

// SameInstance finds the instance that had a path when an operation was accepted:
// another may have its name by now.
func (s *Store) SameInstance(path string, id uint64) (compute.Instance, error) {
	row, err := s.FindInstance(path)
	if err == nil && row.Id != id {
		err = wire.NotFound(path)
	}
	return row, err
}

// PoolDisks are the disks in a storage pool.
func (s *Store) PoolDisks(pool string) (disks []compute.Disk) {
	for _, path := range s.Disks.Below(wire.ProjectPath(wire.ProjectOf(pool))) {
		if row := s.Disks.Rows[path]; row.StoragePool == pool {
			disks = append(disks, row)
		}
	}
	return disks
}

// UsedGb is the size of all disks of a project in a region, in GB.
func (s *Store) UsedGb(project, region string) (used int64) {
	for path, row := range s.Disks.Rows {
		if wire.ProjectOf(path) == project && wire.RegionAt(path) == region {
			used += row.SizeGb
		}
	}
	return used
}
