package disks

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// physicalBlockSize is Google's default, and the only size served.
const physicalBlockSize = 4096

// QuotaMetric is the quota that --quota-gb sets.
const QuotaMetric = "DISKS_TOTAL_GB"

// insertDisk makes a disk, empty or from a source.
type insertDisk struct {
	engine.Quick
	Disk compute.Disk
	From Source
}

func newInsertDisk(r *wire.Request) (engine.Job, error) {
	var requested compute.Disk
	err := r.IntoServed(&requested, "accessMode", "architecture", "description", "diskEncryptionKey", "labels", "name", "params", "physicalBlockSizeBytes",
		"provisionedIops", "provisionedThroughput", "replicaZones", "sizeGb", "sourceDisk", "sourceImage",
		"sourceInstantSnapshot", "sourceSnapshot", "storagePool", "type")
	if err != nil {
		return nil, err
	}
	key, err := newKey(requested.DiskEncryptionKey)
	if err != nil {
		return nil, err
	}
	made := compute.Disk{
		DiskEncryptionKey: key,
		Name:              requested.Name, Description: requested.Description, SizeGb: requested.SizeGb, Labels: requested.Labels,
		Params:                 requested.Params,
		Type:                   cmp.Or(wire.Reference(requested.Type, r.Project), r.Scope()+"/diskTypes/pd-standard"),
		SourceSnapshot:         wire.Reference(requested.SourceSnapshot, r.Project),
		SourceImage:            wire.Reference(cmp.Or(requested.SourceImage, r.URL.Query().Get("sourceImage")), r.Project),
		SourceDisk:             wire.Reference(requested.SourceDisk, r.Project),
		SourceInstantSnapshot:  wire.Reference(requested.SourceInstantSnapshot, r.Project),
		StoragePool:            wire.Reference(requested.StoragePool, r.Project),
		PhysicalBlockSizeBytes: cmp.Or(requested.PhysicalBlockSizeBytes, physicalBlockSize),
		ProvisionedIops:        requested.ProvisionedIops, ProvisionedThroughput: requested.ProvisionedThroughput,
		AccessMode: requested.AccessMode, Architecture: requested.Architecture,
		SelfLink: r.Scope() + "/disks/" + requested.Name, Id: wire.NewID(),
		LabelFingerprint: wire.FingerprintOf(requested.Labels), Status: state.StatusCreating,
	}
	if made.PhysicalBlockSizeBytes != physicalBlockSize {
		return nil, wire.Invalid("resource.physicalBlockSizeBytes", "", "Must be 4096.")
	}
	if r.Region == "" {
		made.Zone = r.Scope()
	} else {
		made.Region = r.Scope()
	}
	for _, zone := range requested.ReplicaZones {
		made.ReplicaZones = append(made.ReplicaZones, wire.Reference(zone, r.Project))
	}
	return &insertDisk{Disk: made}, nil
}

func (j *insertDisk) Accept(s *engine.Engine) (engine.Target, error) {
	path := j.Disk.SelfLink
	if err := wire.CheckName(j.Disk.Name); err != nil {
		return engine.Target{}, err
	}
	if _, found := s.Disks.Get(path); found {
		return engine.Target{}, wire.Exists(path)
	}
	if err := wire.CheckLabels(j.Disk.Labels); err != nil {
		return engine.Target{}, err
	}
	if err := checkTags(j.Disk); err != nil {
		return engine.Target{}, err
	}
	if err := checkReplicas(s, j.Disk); err != nil {
		return engine.Target{}, err
	}
	var err error
	if j.From, err = SettleSource(s, &j.Disk); err != nil {
		return engine.Target{}, err
	}
	if err := s.CheckKey(j.Disk.DiskEncryptionKey); err != nil {
		return engine.Target{}, err
	}
	if err := settleKind(&j.Disk); err != nil {
		return engine.Target{}, err
	}
	if err := checkPool(s, path, j.Disk); err != nil {
		return engine.Target{}, err
	}
	if err := checkQuota(s, path, j.Disk.SizeGb); err != nil {
		return engine.Target{}, err
	}
	j.Disk.CreationTimestamp = s.Timestamp()
	s.Disks.Put(path, j.Disk)
	return engine.Target{Path: path, ID: j.Disk.Id}, nil
}

// checkReplicas checks that a regional disk names two zones of its region, and that no
// other disk names any.
func checkReplicas(s *engine.Engine, disk compute.Disk) error {
	if disk.Region == "" {
		if len(disk.ReplicaZones) > 0 {
			return wire.Invalid("resource.replicaZones", disk.ReplicaZones[0], "Only regional disks have replica zones.")
		}
		return nil
	}
	if len(disk.ReplicaZones) != 2 || disk.ReplicaZones[0] == disk.ReplicaZones[1] {
		return wire.Invalid("resource.replicaZones", "", "Exactly two different replica zones must be specified.")
	}
	for _, zone := range disk.ReplicaZones {
		name := wire.BaseName(zone)
		isHere := zone == wire.ZonePath(wire.ProjectOf(disk.SelfLink), name) && wire.RegionOf(name) == wire.BaseName(disk.Region)
		if !isHere || !slices.Contains(s.Options.Locations.Zones, name) {
			return wire.Invalid("resource.replicaZones", zone, "It is no zone of the region.")
		}
	}
	return nil
}

func (j *insertDisk) Locks() []string {
	if j.From.IsNone() {
		return []string{j.Disk.SelfLink}
	}
	// In the order of their names, so that no job waits for one that waits for it.
	both := []string{j.Disk.SelfLink, j.From.Path}
	slices.Sort(both)
	return both
}

func (j *insertDisk) Work(_ context.Context, s *engine.Engine) error {
	if j.From.IsNone() {
		return s.Contents.Make(j.Disk.Id, j.Disk.SizeGb)
	}
	return j.From.CopyTo(s, j.Disk.Id, j.Disk.SizeGb)
}

func (j *insertDisk) Finish(s *engine.Engine) {
	j.Disk.Status = state.StatusReady
	s.Disks.Put(j.Disk.SelfLink, j.Disk)
}

func (j *insertDisk) Undo(s *engine.Engine, _ string) {
	s.Disks.Remove(j.Disk.SelfLink)
	s.RemoveContent(j.Disk.Id, j.Disk.SelfLink)
}

// checkQuota checks that a project's disks in a region, with one of this size, stay
// within what is allowed.
func checkQuota(s *engine.Engine, path string, sizeGb int64) error {
	region := wire.RegionAt(path)
	used := s.UsedGb(wire.ProjectOf(path), region)
	if before, found := s.Disks.Get(path); found {
		used -= before.SizeGb
	}
	if s.Options.QuotaGb > 0 && used+sizeGb > s.Options.QuotaGb {
		return wire.QuotaExceeded(QuotaMetric, s.Options.QuotaGb, region)
	}
	return nil
}
