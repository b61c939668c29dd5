package gcemock

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/api/compute/v1"
)

// physicalBlockSize is what Google's disks have unless told otherwise.
const physicalBlockSize = 4096

// disksQuota is the quota that --quota-gb sets.
const disksQuota = "DISKS_TOTAL_GB"

// insertDisk makes a disk, empty or from a source.
type insertDisk struct {
	quick
	Disk compute.Disk
	From source
}

func newInsertDisk(r *request) (job, error) {
	var asked compute.Disk
	err := r.intoServed(&asked, "accessMode", "architecture", "description", "labels", "name", "physicalBlockSizeBytes",
		"provisionedIops", "provisionedThroughput", "replicaZones", "sizeGb", "sourceDisk", "sourceImage",
		"sourceInstantSnapshot", "sourceSnapshot", "storagePool", "type")
	if err != nil {
		return nil, err
	}
	made := compute.Disk{
		Name: asked.Name, Description: asked.Description, SizeGb: asked.SizeGb, Labels: asked.Labels,
		Type:                   cmp.Or(reference(asked.Type, r.project), r.scope()+"/diskTypes/pd-standard"),
		SourceSnapshot:         reference(asked.SourceSnapshot, r.project),
		SourceImage:            reference(cmp.Or(asked.SourceImage, r.URL.Query().Get("sourceImage")), r.project),
		SourceDisk:             reference(asked.SourceDisk, r.project),
		SourceInstantSnapshot:  reference(asked.SourceInstantSnapshot, r.project),
		StoragePool:            reference(asked.StoragePool, r.project),
		PhysicalBlockSizeBytes: cmp.Or(asked.PhysicalBlockSizeBytes, physicalBlockSize),
		ProvisionedIops:        asked.ProvisionedIops, ProvisionedThroughput: asked.ProvisionedThroughput,
		AccessMode: asked.AccessMode, Architecture: asked.Architecture,
		SelfLink: r.scope() + "/disks/" + asked.Name, Id: newID(),
		LabelFingerprint: fingerprintOf(asked.Labels), Status: statusCreating,
	}
	if made.PhysicalBlockSizeBytes != physicalBlockSize {
		return nil, errInvalid("resource.physicalBlockSizeBytes", "", "Must be 4096.")
	}
	if r.region == "" {
		made.Zone = r.scope()
	} else {
		made.Region = r.scope()
	}
	for _, zone := range asked.ReplicaZones {
		made.ReplicaZones = append(made.ReplicaZones, reference(zone, r.project))
	}
	return &insertDisk{Disk: made}, nil
}

func (j *insertDisk) Accept(s *Engine) (target, error) {
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
	if err := checkReplicas(s, j.Disk); err != nil {
		return target{}, err
	}
	var err error
	if j.From, err = settleSource(s, &j.Disk); err != nil {
		return target{}, err
	}
	if err := settleKind(&j.Disk); err != nil {
		return target{}, err
	}
	if err := checkPool(s, path, j.Disk); err != nil {
		return target{}, err
	}
	if err := checkQuota(s, path, j.Disk.SizeGb); err != nil {
		return target{}, err
	}
	j.Disk.CreationTimestamp = s.timestamp()
	s.disks.put(path, j.Disk)
	return target{path: path, id: j.Disk.Id}, nil
}

// checkReplicas checks that a regional disk names two zones of its region, and that no
// other disk names any.
func checkReplicas(s *Engine, disk compute.Disk) error {
	if disk.Region == "" {
		if len(disk.ReplicaZones) > 0 {
			return errInvalid("resource.replicaZones", disk.ReplicaZones[0], "Only regional disks have replica zones.")
		}
		return nil
	}
	if len(disk.ReplicaZones) != 2 || disk.ReplicaZones[0] == disk.ReplicaZones[1] {
		return errInvalid("resource.replicaZones", "", "Exactly two different replica zones must be specified.")
	}
	for _, zone := range disk.ReplicaZones {
		name := baseName(zone)
		isHere := zone == zonePath(projectOf(disk.SelfLink), name) && regionOf(name) == baseName(disk.Region)
		if !isHere || !slices.Contains(s.options.Places.Zones, name) {
			return errInvalid("resource.replicaZones", zone, "It is no zone of the region.")
		}
	}
	return nil
}

func (j *insertDisk) Locks() []string {
	if j.From.isNone() {
		return []string{j.Disk.SelfLink}
	}
	// In the order of their names, so that no job waits for one that waits for it.
	both := []string{j.Disk.SelfLink, j.From.Path}
	slices.Sort(both)
	return both
}

func (j *insertDisk) Work(_ context.Context, s *Engine) error {
	if j.From.isNone() {
		return s.contents.make(j.Disk.Id, j.Disk.SizeGb)
	}
	return j.From.copyTo(s, j.Disk.Id, j.Disk.SizeGb)
}

func (j *insertDisk) Finish(s *Engine) {
	j.Disk.Status = statusReady
	s.disks.put(j.Disk.SelfLink, j.Disk)
}

func (j *insertDisk) Undo(s *Engine, _ string) {
	s.disks.remove(j.Disk.SelfLink)
	s.removeContent(j.Disk.Id, j.Disk.SelfLink)
}

// checkQuota checks that a project's disks in a region, with one of this size, stay
// within what is allowed.
func checkQuota(s *Engine, path string, sizeGb int64) error {
	region := regionAt(path)
	used := s.usedGb(projectOf(path), region)
	if before, found := s.disks.get(path); found {
		used -= before.SizeGb
	}
	if s.options.QuotaGb > 0 && used+sizeGb > s.options.QuotaGb {
		return errQuota(disksQuota, s.options.QuotaGb, region)
	}
	return nil
}
