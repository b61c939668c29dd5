package storagepool

import (
	"path"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// standard marks what a pool has that isn't overcommitted: all that its disks are provisioned with counts.
const standard = "STANDARD"

// WhyRefused explains why a disk wasn't made in its pool, which was read after that; nil for a pool that isn't there.
func WhyRefused(pool *compute.StoragePool, disk *compute.Disk, refusal error) error {
	diskType := path.Base(disk.Type)
	switch {
	case pool == nil:
		return backend.Invalid.Errorf("there is no storage pool %s, or the manager's credentials may not see it: make it, and create the claim again, "+
			"or use a class with another pool in its parameter %s: %w", disk.StoragePool, Parameter, refusal)
	case path.Base(pool.StoragePoolType) != diskType:
		return backend.Invalid.Errorf("storage pool %s is for disks of type %.63s, and the disk has type %s: use a class with that type, or with another pool: %w",
			disk.StoragePool, path.Base(pool.StoragePoolType), diskType, refusal)
	case !hasRoom(pool, disk):
		return backend.Exhausted.Errorf("storage pool %s has no room for a disk of %dGi with the IOPS and the throughput that its class asks for: "+
			"enlarge the pool, or delete disks in it: %w", disk.StoragePool, disk.SizeGb, refusal)
	}
	return backend.Invalid.Errorf("the Compute API makes no such disk in storage pool %s: look at the type, the IOPS and the throughput of the disk; "+
		"if it is to be a copy, restore a snapshot instead: %w", disk.StoragePool, refusal)
}

// WhyNotGrown explains why a disk in a pool, which was read after that, didn't become larger by some GiB; nil for a pool
// that isn't seen.
func WhyNotGrown(pool *compute.StoragePool, disk *compute.Disk, byGb int64, refusal error) error {
	if pool == nil || hasRoom(pool, &compute.Disk{SizeGb: byGb}) {
		return refusal
	}
	return backend.Exhausted.Errorf("storage pool %s has no room for %dGi more of disk %s: enlarge the pool, or delete disks in it: %w",
		path.Base(disk.StoragePool), byGb, disk.Name, refusal)
}

// hasRoom reports whether a disk fits into a pool, as far as the pool says so. What a disk leaves to its type isn't known.
func hasRoom(pool *compute.StoragePool, disk *compute.Disk) bool {
	used := pool.ResourceStatus
	if used == nil {
		return true
	}
	mostGb := used.MaxTotalProvisionedDiskCapacityGb
	if mostGb == 0 && pool.CapacityProvisioningType == standard {
		mostGb = pool.PoolProvisionedCapacityGb
	}
	if mostGb > 0 && disk.SizeGb > mostGb-used.TotalProvisionedDiskCapacityGb {
		return false
	}
	return pool.PerformanceProvisioningType != standard ||
		fits(disk.ProvisionedIops, used.TotalProvisionedDiskIops, pool.PoolProvisionedIops) &&
			fits(disk.ProvisionedThroughput, used.TotalProvisionedDiskThroughput, pool.PoolProvisionedThroughput)
}

// fits reports whether a pool has enough of something that a disk asks for. Unknown is 0.
func fits(wanted, used, provisioned int64) bool {
	return wanted == 0 || provisioned == 0 || wanted <= provisioned-used
}
