package gcemock

import (
	"strings"

	"google.golang.org/api/compute/v1"
)

func (s *store) findDisk(path string) (compute.Disk, error) {
	row, found := s.disks.get(path)
	if !found {
		return compute.Disk{}, errNotFound(path)
	}
	return row, nil
}

// sameDisk finds the disk that had a path when an operation was accepted: another may
// have its name by now.
func (s *store) sameDisk(path string, id uint64) (compute.Disk, error) {
	row, err := s.findDisk(path)
	if err == nil && row.Id != id {
		err = errNotFound(path)
	}
	return row, err
}

// findReadyDisk finds a disk that something can be done with.
func (s *store) findReadyDisk(path string) (compute.Disk, error) {
	row, err := s.findDisk(path)
	if err == nil && row.Status != statusReady {
		err = errNotReady(path)
	}
	return row, err
}

// findImage finds an image by its path, or the newest that is ready of a family, by the
// family's path.
func (s *store) findImage(path string) (newest compute.Image, found bool) {
	collection, family, isFamily := strings.Cut(path, "/family/")
	if !isFamily {
		return s.images.get(path)
	}
	for _, path := range s.images.below(collection) {
		row := s.images.rows[path]
		if row.Family == family && row.Status == statusReady && row.CreationTimestamp >= newest.CreationTimestamp {
			newest, found = row, true
		}
	}
	return newest, found
}

func (s *store) findInstance(path string) (compute.Instance, error) {
	row, found := s.instances.get(path)
	if !found {
		return compute.Instance{}, errNotFound(path)
	}
	return row, nil
}

// sameInstance finds the instance that had a path when an operation was accepted:
// another may have its name by now.
func (s *store) sameInstance(path string, id uint64) (compute.Instance, error) {
	row, err := s.findInstance(path)
	if err == nil && row.Id != id {
		err = errNotFound(path)
	}
	return row, err
}

// poolDisks are the disks in a storage pool.
func (s *store) poolDisks(pool string) (disks []compute.Disk) {
	for _, path := range s.disks.below(projectPath(projectOf(pool))) {
		if row := s.disks.rows[path]; row.StoragePool == pool {
			disks = append(disks, row)
		}
	}
	return disks
}

func (s *store) usedGb(project, region string) (used int64) {
	for path, row := range s.disks.rows {
		if projectOf(path) == project && regionAt(path) == region {
			used += row.SizeGb
		}
	}
	return used
}
