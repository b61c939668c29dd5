package gcemock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"google.golang.org/api/compute/v1"
)

// physicalBlockSize is what Google's disks have unless told otherwise.
const physicalBlockSize = 4096

// insertDisk makes a disk, empty or from a snapshot.
type insertDisk struct {
	quick
	Disk compute.Disk
	// Snapshot is the id of the snapshot that it is made from; 0: none.
	Snapshot uint64 `json:",string"`
}

func newInsertDisk(r *request) (job, error) {
	var asked compute.Disk
	if err := r.into(&asked); err != nil {
		return nil, err
	}
	kept := compute.Disk{
		Name: asked.Name, Description: asked.Description, SizeGb: asked.SizeGb, Labels: asked.Labels,
		Type:                   firstOf(reference(asked.Type, r.project), r.scope()+"/diskTypes/pd-standard"),
		SourceSnapshot:         reference(asked.SourceSnapshot, r.project),
		PhysicalBlockSizeBytes: firstOf(asked.PhysicalBlockSizeBytes, physicalBlockSize),
		ProvisionedIops:        asked.ProvisionedIops, ProvisionedThroughput: asked.ProvisionedThroughput,
		Zone: r.scope(), SelfLink: r.scope() + "/disks/" + asked.Name, Id: newID(),
		LabelFingerprint: fingerprintOf(asked.Labels), Status: statusCreating,
	}
	// What the disk would be made from decides what it holds: never an empty one instead.
	for field, value := range map[string]string{
		"sourceImage": asked.SourceImage + r.URL.Query().Get("sourceImage"), "sourceDisk": asked.SourceDisk,
		"sourceInstantSnapshot": asked.SourceInstantSnapshot, "sourceStorageObject": asked.SourceStorageObject,
	} {
		if value != "" {
			return nil, errInvalid("resource."+field, value, "This server makes disks from snapshots only.")
		}
	}
	return &insertDisk{Disk: kept}, nil
}

func (j *insertDisk) accept(s *Server) (target, error) {
	path := j.Disk.SelfLink
	if err := checkName(j.Disk.Name); err != nil {
		return target{}, err
	}
	if _, found := s.disks.get(path); found {
		return target{}, errExists(path)
	}
	if err := checkLabels(j.Disk.Labels); err != nil {
		return target{}, err
	}
	if err := j.takeSnapshot(s); err != nil {
		return target{}, err
	}
	if err := s.settleType(&j.Disk); err != nil {
		return target{}, err
	}
	if err := s.checkQuota(path, j.Disk.SizeGb); err != nil {
		return target{}, err
	}
	j.Disk.CreationTimestamp = s.timestamp()
	s.disks.put(path, j.Disk)
	return target{path: path, id: j.Disk.Id}, nil
}

// takeSnapshot takes size and content from a snapshot, where one is named.
func (j *insertDisk) takeSnapshot(s *Server) error {
	if j.Disk.SourceSnapshot == "" {
		return nil
	}
	snapshot, found := s.snapshots.get(j.Disk.SourceSnapshot)
	if !found {
		return errInvalid("resource.sourceSnapshot", j.Disk.SourceSnapshot, "The referenced snapshot resource cannot be found.")
	}
	if snapshot.Status != statusReady {
		return errNotReady(j.Disk.SourceSnapshot)
	}
	j.Disk.SizeGb = firstOf(j.Disk.SizeGb, snapshot.DiskSizeGb)
	if j.Disk.SizeGb < snapshot.DiskSizeGb {
		return errInvalid("resource.sizeGb", strconv.FormatInt(j.Disk.SizeGb, 10),
			fmt.Sprintf("Requested disk size cannot be smaller than the snapshot size (%d GB)", snapshot.DiskSizeGb))
	}
	j.Snapshot, j.Disk.SourceSnapshotId = snapshot.Id, strconv.FormatUint(snapshot.Id, 10)
	return nil
}

func (j *insertDisk) locks() []string {
	if j.Snapshot == 0 {
		return []string{j.Disk.SelfLink}
	}
	return []string{j.Disk.SelfLink, j.Disk.SourceSnapshot}
}

func (j *insertDisk) work(_ context.Context, s *Server) error {
	if j.Snapshot == 0 {
		return s.images.make(j.Disk.Id, j.Disk.SizeGb)
	}
	err := s.images.copy(j.Snapshot, j.Disk.Id, j.Disk.SizeGb)
	if errors.Is(err, os.ErrNotExist) {
		return errNotFound(j.Disk.SourceSnapshot)
	}
	return err
}

func (j *insertDisk) finish(s *Server) {
	j.Disk.Status = statusReady
	s.disks.put(j.Disk.SelfLink, j.Disk)
}

func (j *insertDisk) undo(s *Server, _ string) {
	s.disks.remove(j.Disk.SelfLink)
	s.removeImage(j.Disk.Id, j.Disk.SelfLink)
}

// checkQuota checks that a project's disks in a region, with one of this size, stay
// within what is allowed.
func (s *Server) checkQuota(path string, sizeGb int64) error {
	region := regionOf(zoneOf(path))
	used := s.usedGb(projectOf(path), region)
	if before, found := s.disks.get(path); found {
		used -= before.SizeGb
	}
	if s.options.QuotaGb > 0 && used+sizeGb > s.options.QuotaGb {
		return errQuota(disksQuota, s.options.QuotaGb, region)
	}
	return nil
}

func (s *Server) usedGb(project, region string) (used int64) {
	for path, row := range s.disks.rows {
		if projectOf(path) == project && regionOf(zoneOf(path)) == region {
			used += row.SizeGb
		}
	}
	return used
}
