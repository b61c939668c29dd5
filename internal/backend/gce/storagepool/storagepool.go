// Package storagepool reads which storage pools a StorageClass names for its disks, and explains why the Compute API
// refused to make a disk in one. It calls no API: its caller reads the pool. The Compute API alone decides which types
// of disks can be in pools, and whether there is room.
package storagepool

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Parameter is the parameter of StorageClasses that names pools.
const Parameter = stowagev1alpha1.GCEPoolsParameter

// maxPools is how many pools a class can name: as many as a backend has zones.
const maxPools = 32

// validPool is the path of a pool. Parts of it become parts of a call's path, so none of them is "..".
var validPool = regexp.MustCompile(`^projects/([a-z0-9](?:[a-z0-9.:-]{0,98}[a-z0-9])?)/zones/([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)/storagePools/([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)$`)

// Pool is a pool. Its project is an id or a number, as the class has it.
type Pool struct{ Project, Zone, Name string }

// Path is how the pool is named in calls; empty for none.
func (p Pool) Path() string {
	if p == (Pool{}) {
		return ""
	}
	return fmt.Sprintf("projects/%s/zones/%s/storagePools/%s", p.Project, p.Zone, p.Name)
}

// OfPath reads the path of a pool.
func OfPath(path string) (Pool, bool) {
	parts := validPool.FindStringSubmatch(path)
	if parts == nil {
		return Pool{}, false
	}
	return Pool{Project: parts[1], Zone: parts[2], Name: parts[3]}, true
}

// Pools are the pools of new disks, by zone. Nil: disks are in no pool.
type Pools map[string]Pool

// Of reads a list of pools with commas between. Its errors are of kind Invalid.
func Of(list string) (Pools, error) {
	pools := Pools{}
	for path := range strings.SplitSeq(list, ",") {
		pool, is := OfPath(strings.TrimSpace(path))
		if !is {
			return nil, backend.Invalid.Errorf("the parameter %s of the StorageClass has %.100q: write projects/PROJECT/zones/ZONE/storagePools/NAME, "+
				"with commas between", Parameter, path)
		}
		if _, twice := pools[pool.Zone]; twice {
			return nil, backend.Invalid.Errorf("the parameter %s of the StorageClass has two pools of zone %s: name one of them", Parameter, pool.Zone)
		}
		pools[pool.Zone] = pool
		if len(pools) > maxPools {
			return nil, backend.Invalid.Errorf("the parameter %s of the StorageClass has more than %d pools: name fewer", Parameter, maxPools)
		}
	}
	return pools, nil
}

// Allow reports whether disks can be made in a zone: there is a pool, or none is named at all.
func (p Pools) Allow(zone string) bool {
	_, has := p[zone]
	return has || p == nil
}

// Zones lists the zones of the pools, for people.
func (p Pools) Zones() string { return strings.Join(slices.Sorted(maps.Keys(p)), ", ") }
