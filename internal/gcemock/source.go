package gcemock

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"
)

// source is what a disk or a copy of one is made from.
type source struct {
	// Path and ID are its own; another may get its path. Empty: nothing.
	Path string
	ID   uint64 `json:",string"`
}

func (f source) isNone() bool { return f.ID == 0 }

// copyTo makes content from the source's, at a size in GB; 0: as large as that.
func (f source) copyTo(s *Engine, id uint64, sizeGb int64) error {
	err := s.contents.copy(f.ID, id, sizeGb)
	if errors.Is(err, os.ErrNotExist) {
		return errNotFound(f.Path)
	}
	return err
}

// settleSource finds what a new disk is made from, and takes its size from there.
func settleSource(s *Engine, disk *compute.Disk) (source, error) {
	finders := []func(*Engine, *compute.Disk) (source, int64, error){
		snapshotOf, imageOf, clonedBy, instantSnapshotOf,
	}
	var found source
	for _, find := range finders {
		from, sizeGb, err := find(s, disk)
		switch {
		case err != nil:
			return source{}, err
		case from.isNone():
			continue
		case !found.isNone():
			return source{}, errInvalid("resource", disk.Name, "A disk has one source at most.")
		}
		found = from
		if disk.SizeGb = cmp.Or(disk.SizeGb, sizeGb); disk.SizeGb < sizeGb {
			return source{}, errInvalid("resource.sizeGb", strconv.FormatInt(disk.SizeGb, 10),
				fmt.Sprintf("Requested disk size cannot be smaller than the size of its source (%d GB)", sizeGb))
		}
	}
	return found, nil
}

// errNoSource refuses a disk whose source does not exist.
func errNoSource(kind, path string) error {
	return errInvalid("resource.source"+strings.ToUpper(kind[:1])+kind[1:], path,
		"The referenced "+kind+" resource cannot be found.")
}

func snapshotOf(s *Engine, disk *compute.Disk) (source, int64, error) {
	path := disk.SourceSnapshot
	row, found := s.snapshots.get(path)
	switch {
	case path == "":
		return source{}, 0, nil
	case !found:
		return source{}, 0, errNoSource("snapshot", path)
	case row.Status != statusReady:
		return source{}, 0, errNotReady(path)
	}
	disk.SourceSnapshotId = strconv.FormatUint(row.Id, 10)
	return source{Path: path, ID: row.Id}, row.DiskSizeGb, nil
}

func imageOf(s *Engine, disk *compute.Disk) (source, int64, error) {
	if disk.SourceImage == "" {
		return source{}, 0, nil
	}
	row, found := s.findImage(disk.SourceImage)
	switch {
	case !found:
		return source{}, 0, errNoSource("image", disk.SourceImage)
	case row.Status != statusReady:
		return source{}, 0, errNotReady(row.SelfLink)
	}
	disk.SourceImage, disk.SourceImageId = row.SelfLink, strconv.FormatUint(row.Id, 10)
	return source{Path: row.SelfLink, ID: row.Id}, row.DiskSizeGb, nil
}

// clonedBy finds the disk that a new disk is a clone of.
func clonedBy(s *Engine, disk *compute.Disk) (source, int64, error) {
	path := disk.SourceDisk
	row, found := s.disks.get(path)
	switch {
	case path == "":
		return source{}, 0, nil
	case !found:
		return source{}, 0, errNoSource("disk", path)
	case row.Status != statusReady:
		return source{}, 0, errNotReady(path)
	case baseName(row.Type) != baseName(disk.Type):
		return source{}, 0, errInvalid("resource.type", disk.Type, "A clone has the type of its source disk.")
	case !isCloneablePlace(row, disk):
		return source{}, 0, errInvalid("resource.sourceDisk", path, "The source disk is in another location than its clone.")
	}
	disk.SourceDiskId = strconv.FormatUint(row.Id, 10)
	return source{Path: path, ID: row.Id}, row.SizeGb, nil
}

// isCloneablePlace reports whether a disk can be cloned to where its clone is to be:
// within its zone or region, or from a zone to a regional disk that has a replica there.
func isCloneablePlace(from compute.Disk, clone *compute.Disk) bool {
	if from.Zone != "" && clone.Region != "" {
		return slices.Contains(clone.ReplicaZones, from.Zone)
	}
	return from.Zone == clone.Zone && from.Region == clone.Region
}

func instantSnapshotOf(s *Engine, disk *compute.Disk) (source, int64, error) {
	path := disk.SourceInstantSnapshot
	row, found := s.instants.get(path)
	switch {
	case path == "":
		return source{}, 0, nil
	case !found:
		return source{}, 0, errNoSource("instantSnapshot", path)
	case row.Status != statusReady:
		return source{}, 0, errNotReady(path)
	case scopeOf(path) != scopeOf(disk.SelfLink):
		return source{}, 0, errInvalid("resource.sourceInstantSnapshot", path, "The source is in another location than the disk.")
	}
	disk.SourceInstantSnapshotId = strconv.FormatUint(row.Id, 10)
	return source{Path: path, ID: row.Id}, row.DiskSizeGb, nil
}
