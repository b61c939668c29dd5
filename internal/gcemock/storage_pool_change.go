package gcemock

import (
	"cmp"
	"slices"
	"strconv"

	"google.golang.org/api/compute/v1"
)

// insertPool makes a storage pool.
type insertPool struct {
	quick
	Pool compute.StoragePool
}

func newInsertPool(r *request) (job, error) {
	var asked compute.StoragePool
	err := r.intoServed(&asked, "capacityProvisioningType", "description", "labels", "name", "performanceProvisioningType",
		"poolProvisionedCapacityGb", "poolProvisionedIops", "poolProvisionedThroughput", "storagePoolType")
	if err != nil {
		return nil, err
	}
	return &insertPool{Pool: compute.StoragePool{
		Name: asked.Name, Description: asked.Description, Labels: asked.Labels, LabelFingerprint: fingerprintOf(asked.Labels),
		CapacityProvisioningType:    cmp.Or(asked.CapacityProvisioningType, "STANDARD"),
		PerformanceProvisioningType: cmp.Or(asked.PerformanceProvisioningType, "STANDARD"),
		PoolProvisionedCapacityGb:   asked.PoolProvisionedCapacityGb, PoolProvisionedIops: asked.PoolProvisionedIops,
		PoolProvisionedThroughput: asked.PoolProvisionedThroughput,
		StoragePoolType:           reference(asked.StoragePoolType, r.project),
		Zone:                      r.scope(), SelfLink: r.scope() + "/storagePools/" + asked.Name, Id: newID(), State: statusCreating,
	}}, nil
}

func (j *insertPool) Locks() []string { return []string{j.Pool.SelfLink} }

func (j *insertPool) Accept(s *Engine) (target, error) {
	path, sizeGb := j.Pool.SelfLink, j.Pool.PoolProvisionedCapacityGb
	if err := checkName(j.Pool.Name); err != nil {
		return target{}, err
	}
	if err := checkLabels(j.Pool.Labels); err != nil {
		return target{}, err
	}
	if _, found := s.pools.get(path); found {
		return target{}, errExists(path)
	}
	of := j.Pool.StoragePoolType
	switch {
	case !slices.Contains(poolTypes, baseName(of)) || of != j.Pool.Zone+"/storagePoolTypes/"+baseName(of):
		return target{}, errInvalid("resource.storagePoolType", of, "The referenced storagePoolType resource cannot be found.")
	case sizeGb < leastPoolGb || sizeGb > mostPoolGb:
		return target{}, errInvalid("resource.poolProvisionedCapacityGb", strconv.FormatInt(sizeGb, 10), "Must be between 10 TiB and 5 PiB.")
	}
	j.Pool.CreationTimestamp = s.timestamp()
	s.pools.put(path, j.Pool)
	return target{path: path, id: j.Pool.Id}, nil
}

func (j *insertPool) Finish(s *Engine) {
	j.Pool.State = statusReady
	s.pools.put(j.Pool.SelfLink, j.Pool)
}

func (j *insertPool) Undo(s *Engine, _ string) { s.pools.remove(j.Pool.SelfLink) }

// deletePool removes a storage pool that has no disks.
type deletePool struct {
	quick
	Path string
	ID   uint64 `json:",string"`
}

func newDeletePool(r *request) (job, error) {
	return &deletePool{Path: r.named("storagePools", "storagePool")}, nil
}

func (j *deletePool) Locks() []string { return []string{j.Path} }

func (j *deletePool) Accept(s *Engine) (target, error) {
	row, found := s.pools.get(j.Path)
	switch {
	case !found:
		return target{}, errNotFound(j.Path)
	case row.State != statusReady:
		return target{}, errNotReady(j.Path)
	}
	j.ID = row.Id
	return target{path: j.Path, id: row.Id}, refuseDisksIn(s, j.Path)
}

func refuseDisksIn(s *Engine, pool string) error {
	for _, disk := range s.poolDisks(pool) {
		return errInUse(pool, disk.SelfLink)
	}
	return nil
}

func (j *deletePool) Begin(s *Engine, _ string) error {
	row, found := s.pools.get(j.Path)
	if !found || row.Id != j.ID {
		return errNotFound(j.Path)
	}
	if err := refuseDisksIn(s, j.Path); err != nil {
		return err
	}
	row.State = statusDeleting
	s.pools.put(j.Path, row)
	return nil
}

func (j *deletePool) Finish(s *Engine) { s.pools.remove(j.Path) }

func (j *deletePool) Undo(s *Engine, _ string) {
	if row, found := s.pools.get(j.Path); found {
		row.State = statusReady
		s.pools.put(j.Path, row)
	}
}
