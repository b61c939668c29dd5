package gcemock

import (
	"fmt"
	"slices"

	"google.golang.org/api/compute/v1"
)

// Limits of storage pools that Google documents.
const (
	leastPoolGb = 10 << 10
	mostPoolGb  = 5 << 20
	// overcommitment is how much larger than an ADVANCED pool its disks can be together.
	overcommitment = 5
)

// poolTypes are the types of disks that there are storage pools of.
var poolTypes = []string{"hyperdisk-balanced", "hyperdisk-throughput"}

// checkPool checks that a disk fits into its storage pool, where it names one.
func checkPool(s *Engine, path string, disk compute.Disk) error {
	if disk.StoragePool == "" {
		return nil
	}
	pool, found := s.pools.get(disk.StoragePool)
	switch {
	case !found:
		return errInvalid("resource.storagePool", disk.StoragePool, "The referenced storagePool resource cannot be found.")
	case pool.State != statusReady:
		return errNotReady(disk.StoragePool)
	case pool.Zone != disk.Zone || baseName(pool.StoragePoolType) != baseName(disk.Type):
		return errInvalid("resource.storagePool", disk.StoragePool, "The disk has another zone or type than the pool.")
	}
	used, limit := disk.SizeGb, pool.PoolProvisionedCapacityGb
	for _, other := range s.poolDisks(disk.StoragePool) {
		if other.SelfLink != path {
			used += other.SizeGb
		}
	}
	if pool.CapacityProvisioningType == "ADVANCED" {
		limit *= overcommitment
	}
	if used > limit {
		return errInvalid("resource.storagePool", disk.StoragePool, fmt.Sprintf("The pool takes disks of %d GB together.", limit))
	}
	return nil
}

// poolView is the storage pool as a client sees it.
func poolView(s *Engine, r *request, row compute.StoragePool) *compute.StoragePool {
	row.Kind = "compute#storagePool"
	status := &compute.StoragePoolResourceStatus{ForceSendFields: []string{"DiskCount"}}
	for _, disk := range s.poolDisks(row.SelfLink) {
		status.DiskCount++
		status.TotalProvisionedDiskCapacityGb += disk.SizeGb
		status.TotalProvisionedDiskIops += disk.ProvisionedIops
		status.TotalProvisionedDiskThroughput += disk.ProvisionedThroughput
	}
	row.Status, row.ResourceStatus = status, status
	for _, link := range []*string{&row.Zone, &row.SelfLink, &row.StoragePoolType} {
		*link = r.link(*link)
	}
	return &row
}

func getPool(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	path := r.named("storagePools", "storagePool")
	row, found := s.pools.get(path)
	if !found {
		return nil, errNotFound(path)
	}
	return poolView(s, r, row), nil
}

func listPools(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.scope() + "/storagePools"
	var all []listed[*compute.StoragePool]
	for _, path := range s.pools.below(id) {
		row := s.pools.rows[path]
		all = append(all, listed[*compute.StoragePool]{name: row.Name, created: row.CreationTimestamp, item: poolView(s, r, row)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	return &compute.StoragePoolList{Kind: "compute#storagePoolList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

func listPoolDisks(s *Engine, r *request) (any, error) {
	s.Lock()
	defer s.Unlock()
	pool := r.named("storagePools", "storagePool")
	if _, found := s.pools.get(pool); !found {
		return nil, errNotFound(pool)
	}
	users := s.usersByDisk()
	var all []listed[*compute.StoragePoolDisk]
	for _, row := range s.poolDisks(pool) {
		all = append(all, listed[*compute.StoragePoolDisk]{name: row.Name, created: row.CreationTimestamp, item: &compute.StoragePoolDisk{
			Name: row.Name, Disk: r.link(row.SelfLink), Type: r.link(row.Type), SizeGb: row.SizeGb, Status: row.Status,
			ProvisionedIops: row.ProvisionedIops, ProvisionedThroughput: row.ProvisionedThroughput,
			CreationTimestamp: row.CreationTimestamp, AttachedInstances: r.links(users[row.SelfLink]),
		}})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := pool + "/listDisks"
	return &compute.StoragePoolListDisks{
		Kind: "compute#storagePoolListDisks", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id),
	}, nil
}

func getPoolType(s *Engine, r *request) (any, error) {
	path := r.named("storagePoolTypes", "storagePoolType")
	if !slices.Contains(poolTypes, baseName(path)) {
		return nil, errNotFound(path)
	}
	return poolType(r, baseName(path)), nil
}

func listPoolTypes(s *Engine, r *request) (any, error) {
	var all []listed[*compute.StoragePoolType]
	for _, name := range poolTypes {
		all = append(all, listed[*compute.StoragePoolType]{name: name, created: catalogTime, item: poolType(r, name)})
	}
	items, next, err := paged(r, all)
	if err != nil {
		return nil, err
	}
	id := r.scope() + "/storagePoolTypes"
	return &compute.StoragePoolTypeList{Kind: "compute#storagePoolTypeList", Id: id, Items: items, NextPageToken: next, SelfLink: r.link(id)}, nil
}

func poolType(r *request, name string) *compute.StoragePoolType {
	path := r.scope() + "/storagePoolTypes/" + name
	return &compute.StoragePoolType{
		Kind: "compute#storagePoolType", Id: idOf(path), Name: name, Description: diskKinds[name].description,
		CreationTimestamp: catalogTime, MinPoolProvisionedCapacityGb: leastPoolGb, MaxPoolProvisionedCapacityGb: mostPoolGb,
		SupportedDiskTypes: []string{r.link(r.scope() + "/diskTypes/" + name)}, Zone: r.link(r.scope()), SelfLink: r.link(path),
	}
}
