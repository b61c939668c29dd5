package storagepool

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

func poolAt(zone, name string) string { return "projects/p/zones/" + zone + "/storagePools/" + name }

func TestAClassNamesOnePoolForEachZone(t *testing.T) {
	many := make([]string, 33)
	for i := range many {
		many[i] = poolAt(fmt.Sprintf("z-%d", i), "fast")
	}
	for name, test := range map[string]struct {
		list    string
		want    Pools
		problem string
	}{
		"one":                           {poolAt("a", "fast"), Pools{"a": {"p", "a", "fast"}}, ""},
		"one of each zone":              {poolAt("a", "fast") + ", " + poolAt("b", "slow"), Pools{"a": {"p", "a", "fast"}, "b": {"p", "b", "slow"}}, ""},
		"a project by its number":       {"projects/123456789/zones/a/storagePools/fast", Pools{"a": {"123456789", "a", "fast"}}, ""},
		"a project of a domain":         {"projects/example.com:p/zones/a/storagePools/fast", Pools{"a": {"example.com:p", "a", "fast"}}, ""},
		"two of one zone":               {poolAt("a", "fast") + "," + poolAt("a", "slow"), nil, "has two pools of zone a"},
		"more than zones of a backend":  {strings.Join(many, ","), nil, "more than 32 pools"},
		"nothing":                       {"", nil, "write projects/PROJECT/zones/ZONE/storagePools/NAME"},
		"a comma at the end":            {poolAt("a", "fast") + ",", nil, `has ""`},
		"a name alone":                  {"fast", nil, `has "fast"`},
		"a URL":                         {"https://www.googleapis.com/compute/v1/" + poolAt("a", "fast"), nil, "write projects/PROJECT"},
		"a pool of a region":            {"projects/p/regions/a/storagePools/fast", nil, "write projects/PROJECT"},
		"a path that leads elsewhere":   {"projects/../zones/a/storagePools/fast", nil, "write projects/PROJECT"},
		"a name that leads elsewhere":   {"projects/p/zones/a/storagePools/..", nil, "write projects/PROJECT"},
		"a name that ends with a break": {poolAt("a", "fast") + "\n/x", nil, "write projects/PROJECT"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(test.list)
			if !maps.Equal(got, test.want) {
				t.Errorf("they are %v", got)
			}
			if test.problem == "" && err != nil || test.problem != "" && (!errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestOnlyAClassWithPoolsDecidesOnZones(t *testing.T) {
	pools := Pools{"a": {"p", "a", "fast"}, "b": {"p", "b", "fast"}}
	if !pools.Allow("a") || pools.Allow("c") || !Pools(nil).Allow("c") || pools.Zones() != "a, b" {
		t.Errorf("the zones are %s", pools.Zones())
	}
	if got := pools["a"].Path(); got != poolAt("a", "fast") {
		t.Errorf("the path of a pool is %s", got)
	}
	if got := Pools(nil)["a"].Path(); got != "" {
		t.Errorf("the path of no pool is %s", got)
	}
}

func TestARefusalSaysWhatToDoAboutThePool(t *testing.T) {
	disk := &compute.Disk{SizeGb: 100, Type: "zones/a/diskTypes/hyperdisk-balanced", StoragePool: poolAt("a", "fast"), ProvisionedIops: 5000}
	pool := func(change func(*compute.StoragePool)) *compute.StoragePool {
		made := &compute.StoragePool{
			StoragePoolType: "zones/a/storagePoolTypes/hyperdisk-balanced", CapacityProvisioningType: "STANDARD", PerformanceProvisioningType: "STANDARD",
			PoolProvisionedCapacityGb: 1000, PoolProvisionedIops: 10_000,
			ResourceStatus: &compute.StoragePoolResourceStatus{TotalProvisionedDiskCapacityGb: 900, TotalProvisionedDiskIops: 5000},
		}
		change(made)
		return made
	}
	for name, test := range map[string]struct {
		pool *compute.StoragePool
		kind backend.ErrorKind
		says string
	}{
		"there is none": {nil, backend.Invalid, "there is no storage pool " + disk.StoragePool},
		"it is for another type": {
			pool(func(pool *compute.StoragePool) {
				pool.StoragePoolType = "zones/a/storagePoolTypes/hyperdisk-throughput"
			}),
			backend.Invalid, "is for disks of type hyperdisk-throughput, and the disk has type hyperdisk-balanced",
		},
		"it is full": {
			pool(func(pool *compute.StoragePool) { pool.ResourceStatus.TotalProvisionedDiskCapacityGb++ }),
			backend.Exhausted, "has no room for a disk of 100Gi",
		},
		"it says itself that it is full": {pool(func(pool *compute.StoragePool) {
			pool.CapacityProvisioningType, pool.ResourceStatus.MaxTotalProvisionedDiskCapacityGb = "ADVANCED", 999
		}), backend.Exhausted, "enlarge the pool"},
		"its IOPS are used up": {
			pool(func(pool *compute.StoragePool) { pool.ResourceStatus.TotalProvisionedDiskIops++ }),
			backend.Exhausted, "enlarge the pool",
		},
		"its IOPS are overcommitted": {pool(func(pool *compute.StoragePool) {
			pool.ResourceStatus.TotalProvisionedDiskIops++
			pool.PerformanceProvisioningType = "ADVANCED"
		}), backend.Invalid, "look at the type, the IOPS and the throughput"},
		"the pool seems to be well":     {pool(func(*compute.StoragePool) {}), backend.Invalid, "restore a snapshot instead"},
		"it doesn't say what it is for": {pool(func(pool *compute.StoragePool) { pool.ResourceStatus = nil }), backend.Invalid, "makes no such disk in storage pool"},
	} {
		t.Run(name, func(t *testing.T) {
			err := WhyRefused(test.pool, disk, errors.New("no luck"))
			if backend.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "no luck") {
				t.Errorf("the error is %v, of kind %s", err, backend.KindOf(err))
			}
		})
	}
}
