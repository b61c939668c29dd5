package disks

import (
	"cmp"
	"slices"
	"strconv"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// insertPool makes a storage pool.
type insertPool struct {
	engine.Quick
	Pool compute.StoragePool
}

func newInsertPool(r *wire.Request) (engine.Job, error) {
	var requested compute.StoragePool
	err := r.IntoServed(&requested, "capacityProvisioningType", "description", "labels", "name", "performanceProvisioningType",
		"poolProvisionedCapacityGb", "poolProvisionedIops", "poolProvisionedThroughput", "storagePoolType")
	if err != nil {
		return nil, err
	}
	return &insertPool{Pool: compute.StoragePool{
		Name: requested.Name, Description: requested.Description, Labels: requested.Labels, LabelFingerprint: wire.FingerprintOf(requested.Labels),
		CapacityProvisioningType:    cmp.Or(requested.CapacityProvisioningType, "STANDARD"),
		PerformanceProvisioningType: cmp.Or(requested.PerformanceProvisioningType, "STANDARD"),
		PoolProvisionedCapacityGb:   requested.PoolProvisionedCapacityGb, PoolProvisionedIops: requested.PoolProvisionedIops,
		PoolProvisionedThroughput: requested.PoolProvisionedThroughput,
		StoragePoolType:           wire.Reference(requested.StoragePoolType, r.Project),
		Zone:                      r.Scope(), SelfLink: r.Scope() + "/storagePools/" + requested.Name, Id: wire.NewID(), State: state.StatusCreating,
	}}, nil
}

func (j *insertPool) Locks() []string { return []string{j.Pool.SelfLink} }

func (j *insertPool) Accept(s *engine.Engine) (engine.Target, error) {
	path, sizeGb := j.Pool.SelfLink, j.Pool.PoolProvisionedCapacityGb
	if err := wire.CheckName(j.Pool.Name); err != nil {
		return engine.Target{}, err
	}
	if err := wire.CheckLabels(j.Pool.Labels); err != nil {
		return engine.Target{}, err
	}
	if _, found := s.Pools.Get(path); found {
		return engine.Target{}, wire.Exists(path)
	}
	of := j.Pool.StoragePoolType
	switch {
	case !slices.Contains(poolTypes, wire.BaseName(of)) || of != j.Pool.Zone+"/storagePoolTypes/"+wire.BaseName(of):
		return engine.Target{}, wire.Invalid("resource.storagePoolType", of, "The referenced storagePoolType resource cannot be found.")
	case sizeGb < leastPoolGb || sizeGb > mostPoolGb:
		return engine.Target{}, wire.Invalid("resource.poolProvisionedCapacityGb", strconv.FormatInt(sizeGb, 10), "Must be between 10 TiB and 5 PiB.")
	}
	j.Pool.CreationTimestamp = s.Timestamp()
	s.Pools.Put(path, j.Pool)
	return engine.Target{Path: path, ID: j.Pool.Id}, nil
}

func (j *insertPool) Finish(s *engine.Engine) {
	j.Pool.State = state.StatusReady
	s.Pools.Put(j.Pool.SelfLink, j.Pool)
}

func (j *insertPool) Undo(s *engine.Engine, _ string) { s.Pools.Remove(j.Pool.SelfLink) }

// deletePool removes a storage pool that has no disks.
type deletePool struct {
	engine.Quick
	Path string
	ID   uint64 `json:",string"`
}

func newDeletePool(r *wire.Request) (engine.Job, error) {
	return &deletePool{Path: r.Named("storagePools", "storagePool")}, nil
}

func (j *deletePool) Locks() []string { return []string{j.Path} }

func (j *deletePool) Accept(s *engine.Engine) (engine.Target, error) {
	row, found := s.Pools.Get(j.Path)
	switch {
	case !found:
		return engine.Target{}, wire.NotFound(j.Path)
	case row.State != state.StatusReady:
		return engine.Target{}, wire.NotReady(j.Path)
	}
	j.ID = row.Id
	return engine.Target{Path: j.Path, ID: row.Id}, refuseDisksIn(s, j.Path)
}

func refuseDisksIn(s *engine.Engine, pool string) error {
	for _, disk := range s.PoolDisks(pool) {
		return wire.InUse(pool, disk.SelfLink)
	}
	return nil
}

func (j *deletePool) Begin(s *engine.Engine, _ string) error {
	row, found := s.Pools.Get(j.Path)
	if !found || row.Id != j.ID {
		return wire.NotFound(j.Path)
	}
	if err := refuseDisksIn(s, j.Path); err != nil {
		return err
	}
	row.State = state.StatusDeleting
	s.Pools.Put(j.Path, row)
	return nil
}

func (j *deletePool) Finish(s *engine.Engine) { s.Pools.Remove(j.Path) }

func (j *deletePool) Undo(s *engine.Engine, _ string) {
	if row, found := s.Pools.Get(j.Path); found {
		row.State = state.StatusReady
		s.Pools.Put(j.Path, row)
	}
}
