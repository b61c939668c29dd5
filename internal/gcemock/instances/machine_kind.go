package instances

import (
	"slices"
	"strconv"
	"strings"
)

// Limits of disks that Google documents for machine types.
const (
	sharedCoreDisks = 16
	mostDisks       = 128
)

// machineKind is what Google documents of a machine type.
type machineKind struct {
	cpus, memoryMb int64
	isSharedCore   bool
	// maxDisks is how many disks an instance can have, with its boot disk.
	maxDisks int
	// persistent and hyper are the disks that it takes.
	persistent, hyper bool
}

// sharedCores are the machine types with a part of a core.
var sharedCores = map[string]machineKind{
	"e2-micro":  {cpus: 2, memoryMb: 1024},
	"e2-small":  {cpus: 2, memoryMb: 2048},
	"e2-medium": {cpus: 2, memoryMb: 4096},
	"f1-micro":  {cpus: 1, memoryMb: 614},
	"g1-small":  {cpus: 1, memoryMb: 1740},
}

// disksByCPUs is how many disks a machine with at most this many CPUs can have.
type disksByCPUs struct {
	cpus  int64
	disks int
}

// machineSeries is what Google documents of a series of machine types.
type machineSeries struct {
	// cpus are the sizes that there are.
	cpus              []int64
	persistent, hyper bool
	// limits by CPUs, without the boot disk. None: mostDisks for all.
	limits []disksByCPUs
}

// series are the series of general machine types. All have standard, highmem and
// highcpu types here.
var series = map[string]machineSeries{
	"e2":  {cpus: []int64{2, 4, 8, 16, 32}, persistent: true},
	"n1":  {cpus: []int64{1, 2, 4, 8, 16, 32, 64, 96}, persistent: true},
	"n2":  {cpus: []int64{2, 4, 8, 16, 32, 48, 64, 80, 96, 128}, persistent: true, hyper: true},
	"n2d": {cpus: []int64{2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224}, persistent: true, hyper: true},
	"c3":  {cpus: []int64{4, 8, 22, 44, 88, 176}, persistent: true, hyper: true},
	"c3d": {cpus: []int64{4, 8, 16, 30, 60, 90, 180, 360}, persistent: true, hyper: true},
	"n4":  {cpus: []int64{2, 4, 8, 16, 32, 48, 64, 80}, hyper: true, limits: []disksByCPUs{{8, 15}, {80, 31}}},
	"c4": {
		cpus: []int64{2, 4, 8, 16, 24, 32, 48, 96, 144, 192, 288}, hyper: true,
		limits: []disksByCPUs{{2, 7}, {4, 15}, {24, 31}, {48, 63}, {288, 127}},
	},
	"c4a": {
		cpus: []int64{1, 2, 4, 8, 16, 32, 48, 64, 72}, hyper: true,
		limits: []disksByCPUs{{2, 7}, {8, 15}, {48, 31}, {72, 63}},
	},
}

// memoryPerCPU in MB, of the types of a series.
var memoryPerCPU = map[string]int64{"standard": 4096, "highmem": 8192, "highcpu": 2048}

// machineTypes are the names of all machine types.
func machineTypes() (names []string) {
	for name := range sharedCores {
		names = append(names, name)
	}
	for name, one := range series {
		for shape := range memoryPerCPU {
			for _, cpus := range one.cpus {
				names = append(names, name+"-"+shape+"-"+strconv.FormatInt(cpus, 10))
			}
		}
	}
	slices.Sort(names)
	return names
}

// machineKindOf is what there is to know of a machine type.
func machineKindOf(name string) (kind machineKind, known bool) {
	if shared, known := sharedCores[name]; known {
		shared.isSharedCore, shared.maxDisks, shared.persistent = true, sharedCoreDisks, true
		return shared, true
	}
	parts := strings.Split(name, "-")
	if len(parts) != 3 || memoryPerCPU[parts[1]] == 0 {
		return machineKind{}, false
	}
	of := series[parts[0]]
	cpus, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || !slices.Contains(of.cpus, cpus) {
		return machineKind{}, false
	}
	return machineKind{
		cpus: cpus, memoryMb: cpus * memoryPerCPU[parts[1]], maxDisks: of.maxDisks(cpus),
		persistent: of.persistent, hyper: of.hyper,
	}, true
}

func (m machineSeries) maxDisks(cpus int64) int {
	for _, limit := range m.limits {
		if cpus <= limit.cpus {
			return limit.disks + 1
		}
	}
	return mostDisks
}

// supports reports whether instances of this kind can have disks of a type.
func (k machineKind) supports(diskType string) bool {
	if strings.HasPrefix(diskType, "hyperdisk-") {
		return k.hyper
	}
	return k.persistent
}
