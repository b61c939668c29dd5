package disks

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// Source is what a disk or a copy of one is made from.
type Source struct {
	// Path and ID are its own; another may get its path. Empty: nothing.
	Path string
	ID   uint64 `json:",string"`
}

// IsNone reports whether there is no source.
func (f Source) IsNone() bool { return f.ID == 0 }

// CopyTo makes content from the source's, at a size in GB; 0: as large as that.
func (f Source) CopyTo(s *engine.Engine, id uint64, sizeGb int64) error {
	err := s.Contents.Copy(f.ID, id, sizeGb)
	if errors.Is(err, os.ErrNotExist) {
		return wire.NotFound(f.Path)
	}
	return err
}

// SettleSource finds what a new disk is made from, and takes its size from there.
func SettleSource(s *engine.Engine, disk *compute.Disk) (Source, error) {
	finders := []func(*engine.Engine, *compute.Disk) (Source, int64, error){
		snapshotOf, imageOf, clonedBy, instantSnapshotOf,
	}
	var found Source
	for _, find := range finders {
		from, sizeGb, err := find(s, disk)
		switch {
		case err != nil:
			return Source{}, err
		case from.IsNone():
			continue
		case !found.IsNone():
			return Source{}, wire.Invalid("resource", disk.Name, "A disk has one source at most.")
		}
		found = from
		if disk.SizeGb = cmp.Or(disk.SizeGb, sizeGb); disk.SizeGb < sizeGb {
			return Source{}, wire.Invalid("resource.sizeGb", strconv.FormatInt(disk.SizeGb, 10),
				fmt.Sprintf("Requested disk size cannot be smaller than the size of its source (%d GB)", sizeGb))
		}
	}
	return found, nil
}

// errNoSource refuses a disk with a source that does not exist.
func errNoSource(kind, path string) error {
	return wire.Invalid("resource.source"+strings.ToUpper(kind[:1])+kind[1:], path,
		"The referenced "+kind+" resource cannot be found.")
}

func snapshotOf(s *engine.Engine, disk *compute.Disk) (Source, int64, error) {
	path := disk.SourceSnapshot
	row, found := s.Snapshots.Get(path)
	switch {
	case path == "":
		return Source{}, 0, nil
	case !found:
		return Source{}, 0, errNoSource("snapshot", path)
	case row.Status != state.StatusReady:
		return Source{}, 0, wire.NotReady(path)
	}
	disk.SourceSnapshotId = strconv.FormatUint(row.Id, 10)
	return Source{Path: path, ID: row.Id}, row.DiskSizeGb, s.CheckKey(row.SnapshotEncryptionKey)
}

func imageOf(s *engine.Engine, disk *compute.Disk) (Source, int64, error) {
	if disk.SourceImage == "" {
		return Source{}, 0, nil
	}
	row, found := s.FindImage(disk.SourceImage)
	switch {
	case !found:
		return Source{}, 0, errNoSource("image", disk.SourceImage)
	case row.Status != state.StatusReady:
		return Source{}, 0, wire.NotReady(row.SelfLink)
	}
	disk.SourceImage, disk.SourceImageId = row.SelfLink, strconv.FormatUint(row.Id, 10)
	return Source{Path: row.SelfLink, ID: row.Id}, row.DiskSizeGb, s.CheckKey(row.ImageEncryptionKey)
}

// clonedBy finds the disk that a new disk is a clone of.
func clonedBy(s *engine.Engine, disk *compute.Disk) (Source, int64, error) {
	path := disk.SourceDisk
	row, found := s.Disks.Get(path)
	switch {
	case path == "":
		return Source{}, 0, nil
	case !found:
		return Source{}, 0, errNoSource("disk", path)
	case row.Status != state.StatusReady:
		return Source{}, 0, wire.NotReady(path)
	case wire.BaseName(row.Type) != wire.BaseName(disk.Type):
		return Source{}, 0, wire.Invalid("resource.type", disk.Type, "A clone has the type of its source disk.")
	case !isCloneableTo(row, disk):
		return Source{}, 0, wire.Invalid("resource.sourceDisk", path, "The source disk is in another location than its clone.")
	}
	disk.SourceDiskId = strconv.FormatUint(row.Id, 10)
	return Source{Path: path, ID: row.Id}, row.SizeGb, cmp.Or(inheritKey(row, disk), s.CheckKey(row.DiskEncryptionKey))
}

// isCloneableTo reports whether a disk can be cloned to the location of its clone. That is within its
// zone or region, or from a zone to a regional disk that has a replica there.
func isCloneableTo(from compute.Disk, clone *compute.Disk) bool {
	if from.Zone != "" && clone.Region != "" {
		return slices.Contains(clone.ReplicaZones, from.Zone)
	}
	return from.Zone == clone.Zone && from.Region == clone.Region
}

func instantSnapshotOf(s *engine.Engine, disk *compute.Disk) (Source, int64, error) {
	path := disk.SourceInstantSnapshot
	row, found := s.Instants.Get(path)
	switch {
	case path == "":
		return Source{}, 0, nil
	case !found:
		return Source{}, 0, errNoSource("instantSnapshot", path)
	case row.Status != state.StatusReady:
		return Source{}, 0, wire.NotReady(path)
	case wire.ScopeOf(path) != wire.ScopeOf(disk.SelfLink):
		return Source{}, 0, wire.Invalid("resource.sourceInstantSnapshot", path, "The source is in another location than the disk.")
	}
	disk.SourceInstantSnapshotId = strconv.FormatUint(row.Id, 10)
	return Source{Path: path, ID: row.Id}, row.DiskSizeGb, nil
}
