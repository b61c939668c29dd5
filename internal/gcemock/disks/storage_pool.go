package disks

import (
	"fmt"
	"slices"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
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
func checkPool(s *engine.Engine, path string, disk compute.Disk) error {
	if disk.StoragePool == "" {
		return nil
	}
	pool, found := s.Pools.Get(disk.StoragePool)
	switch {
	case !found:
		return wire.Invalid("resource.storagePool", disk.StoragePool, "The referenced storagePool resource cannot be found.")
	case pool.State != state.StatusReady:
		return wire.NotReady(disk.StoragePool)
	case pool.Zone != disk.Zone || wire.BaseName(pool.StoragePoolType) != wire.BaseName(disk.Type):
		return wire.Invalid("resource.storagePool", disk.StoragePool, "The disk has another zone or type than the pool.")
	}
	used, limit := disk.SizeGb, mostDisksGb(pool)
	for _, other := range s.PoolDisks(disk.StoragePool) {
		if other.SelfLink != path {
			used += other.SizeGb
		}
	}
	if used > limit {
		return wire.Invalid("resource.storagePool", disk.StoragePool, fmt.Sprintf("The pool takes disks of %d GB together.", limit))
	}
	return nil
}

// mostDisksGb is how large the disks of a pool can be together.
func mostDisksGb(pool compute.StoragePool) int64 {
	if pool.CapacityProvisioningType == "ADVANCED" {
		return pool.PoolProvisionedCapacityGb * overcommitment
	}
	return pool.PoolProvisionedCapacityGb
}

// poolView is the storage pool as a client sees it.
func poolView(s *engine.Engine, r *wire.Request, row compute.StoragePool) *compute.StoragePool {
	row.Kind = "compute#storagePool"
	status := &compute.StoragePoolResourceStatus{MaxTotalProvisionedDiskCapacityGb: mostDisksGb(row), ForceSendFields: []string{"DiskCount"}}
	for _, disk := range s.PoolDisks(row.SelfLink) {
		status.DiskCount++
		status.TotalProvisionedDiskCapacityGb += disk.SizeGb
		status.TotalProvisionedDiskIops += disk.ProvisionedIops
		status.TotalProvisionedDiskThroughput += disk.ProvisionedThroughput
	}
	row.Status, row.ResourceStatus = status, status
	for _, link := range []*string{&row.Zone, &row.SelfLink, &row.StoragePoolType} {
		*link = r.Link(*link)
	}
	return &row
}

func getPool(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	path := r.Named("storagePools", "storagePool")
	row, found := s.Pools.Get(path)
	if !found {
		return nil, wire.NotFound(path)
	}
	return poolView(s, r, row), nil
}

func listPools(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	id := r.Scope() + "/storagePools"
	var all []wire.Listed[*compute.StoragePool]
	for _, path := range s.Pools.Below(id) {
		row := s.Pools.Rows[path]
		all = append(all, wire.Listed[*compute.StoragePool]{Name: row.Name, Created: row.CreationTimestamp, Item: poolView(s, r, row)})
	}
	return wire.List(r, "storagePoolList", id, all)
}

func listPoolDisks(s *engine.Engine, r *wire.Request) (any, error) {
	s.Lock()
	defer s.Unlock()
	pool := r.Named("storagePools", "storagePool")
	if _, found := s.Pools.Get(pool); !found {
		return nil, wire.NotFound(pool)
	}
	users := s.UsersByDisk()
	var all []wire.Listed[*compute.StoragePoolDisk]
	for _, row := range s.PoolDisks(pool) {
		all = append(all, wire.Listed[*compute.StoragePoolDisk]{Name: row.Name, Created: row.CreationTimestamp, Item: &compute.StoragePoolDisk{
			Name: row.Name, Disk: r.Link(row.SelfLink), Type: r.Link(row.Type), SizeGb: row.SizeGb, Status: row.Status,
			ProvisionedIops: row.ProvisionedIops, ProvisionedThroughput: row.ProvisionedThroughput,
			CreationTimestamp: row.CreationTimestamp, AttachedInstances: r.Links(users[row.SelfLink]),
		}})
	}
	return wire.List(r, "storagePoolListDisks", pool+"/listDisks", all)
}

func getPoolType(_ *engine.Engine, r *wire.Request) (any, error) {
	path := r.Named("storagePoolTypes", "storagePoolType")
	if !slices.Contains(poolTypes, wire.BaseName(path)) {
		return nil, wire.NotFound(path)
	}
	return poolType(r, wire.BaseName(path)), nil
}

func listPoolTypes(_ *engine.Engine, r *wire.Request) (any, error) {
	var all []wire.Listed[*compute.StoragePoolType]
	for _, name := range poolTypes {
		all = append(all, wire.Listed[*compute.StoragePoolType]{Name: name, Created: wire.CatalogTime, Item: poolType(r, name)})
	}
	return wire.List(r, "storagePoolTypeList", r.Scope()+"/storagePoolTypes", all)
}

func poolType(r *wire.Request, name string) *compute.StoragePoolType {
	path := r.Scope() + "/storagePoolTypes/" + name
	return &compute.StoragePoolType{
		Kind: "compute#storagePoolType", Id: wire.IDOf(path), Name: name, Description: diskKinds[name].description,
		CreationTimestamp: wire.CatalogTime, MinPoolProvisionedCapacityGb: leastPoolGb, MaxPoolProvisionedCapacityGb: mostPoolGb,
		SupportedDiskTypes: []string{r.Link(r.Scope() + "/diskTypes/" + name)}, Zone: r.Link(r.Scope()), SelfLink: r.Link(path),
	}
}
