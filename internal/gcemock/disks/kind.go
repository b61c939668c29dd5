package disks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// diskKind is what Google documents of a type of disk.
type diskKind struct {
	description             string
	minGb, maxGb, defaultGb int64
	// regionalMinGb is the least size of a regional disk. 0: no disk of this type is regional.
	regionalMinGb int64
	// onlyRegional types have no zonal disks.
	onlyRegional bool
	// iops and throughput (in MiB/s) are what clients can provision.
	iops, throughput performance
	// accessModes are those that a disk can have; the first is the default.
	accessModes []string
}

// performance is the range in which clients can provision IOPS or throughput. The zero
// value: not at all.
type performance struct {
	least, most int64
	// leastPerGb and mostPerGb bound it by size, too. 0: no bound.
	leastPerGb, mostPerGb float64
	// base and perGb make the default: base + perGb * size, within the range.
	base  int64
	perGb float64
}

// diskKinds are the types of disks. See "Choose a disk type" and the pages of each
// hyperdisk type in the documentation of Compute Engine.
var diskKinds = map[string]diskKind{
	"pd-standard": {description: "Standard Persistent Disk", minGb: 10, maxGb: 65536, defaultGb: 500, regionalMinGb: 200},
	"pd-balanced": {description: "Balanced Persistent Disk", minGb: 10, maxGb: 65536, defaultGb: 100, regionalMinGb: 10},
	"pd-ssd":      {description: "SSD Persistent Disk", minGb: 10, maxGb: 65536, defaultGb: 100, regionalMinGb: 10},
	"pd-extreme": {
		description: "Extreme Persistent Disk", minGb: 500, maxGb: 65536, defaultGb: 1000,
		iops: performance{least: 10_000, most: 120_000, base: 100_000},
	},
	"hyperdisk-balanced": {
		description: "Hyperdisk Balanced", minGb: 4, maxGb: 65536, defaultGb: 100,
		iops:        performance{least: 3000, most: 160_000, mostPerGb: 500, base: 3000, perGb: 6},
		throughput:  performance{least: 140, most: 2400, base: 140, perGb: 1.5},
		accessModes: []string{state.AccessSingle, state.AccessMany},
	},
	"hyperdisk-balanced-high-availability": {
		description: "Hyperdisk Balanced High Availability", minGb: 4, maxGb: 65536, defaultGb: 100,
		regionalMinGb: 4, onlyRegional: true,
		iops:        performance{least: 3000, most: 100_000, mostPerGb: 500, base: 3000, perGb: 6},
		throughput:  performance{least: 140, most: 2400, base: 140, perGb: 1.5},
		accessModes: []string{state.AccessSingle, state.AccessMany},
	},
	"hyperdisk-extreme": {
		description: "Hyperdisk Extreme", minGb: 64, maxGb: 65536, defaultGb: 1000,
		iops:        performance{least: 128, most: 350_000, leastPerGb: 2, mostPerGb: 1200, perGb: 100},
		accessModes: []string{state.AccessSingle},
	},
	"hyperdisk-throughput": {
		description: "Hyperdisk Throughput", minGb: 2048, maxGb: 32768, defaultGb: 2048,
		throughput:  performance{least: 20, most: 2400, leastPerGb: 10.0 / 1024, mostPerGb: 90.0 / 1024, perGb: 90.0 / 1024},
		accessModes: []string{state.AccessSingle},
	},
	"hyperdisk-ml": {
		description: "Hyperdisk ML", minGb: 4, maxGb: 65536, defaultGb: 100,
		throughput:  performance{least: 400, most: 1_200_000, leastPerGb: 0.12, mostPerGb: 1600, perGb: 24},
		accessModes: []string{state.AccessSingle, state.AccessRead},
	},
}

// bounds are the least and the most that a disk of this size can have.
func (p performance) bounds(sizeGb int64) (least, most int64) {
	least, most = max(p.least, int64(p.leastPerGb*float64(sizeGb))), p.most
	if p.mostPerGb > 0 {
		most = min(most, int64(p.mostPerGb*float64(sizeGb)))
	}
	// A small disk can have no more than its size allows, and has no less.
	return min(least, most), most
}

// settle returns the wanted value if a disk of this size can have it, and the default
// for none.
func (p performance) settle(field string, wanted, sizeGb int64) (int64, error) {
	least, most := p.bounds(sizeGb)
	switch {
	case p == performance{}:
		if wanted != 0 {
			return 0, wire.Invalid("resource."+field, strconv.FormatInt(wanted, 10), "The disk type does not support it.")
		}
		return 0, nil
	case wanted == 0:
		return min(max(p.base+int64(p.perGb*float64(sizeGb)), least), most), nil
	case wanted < least || wanted > most:
		return 0, wire.Invalid("resource."+field, strconv.FormatInt(wanted, 10),
			fmt.Sprintf("It must be between %d and %d for a disk of %d GB of this type.", least, most, sizeGb))
	default:
		return wanted, nil
	}
}

// settleKind checks what the type of a disk decides, and fills in the defaults.
func settleKind(disk *compute.Disk) error {
	name := wire.BaseName(disk.Type)
	kind, known := diskKinds[name]
	if !known || wire.ScopeOf(disk.Type) != wire.ScopeOf(disk.SelfLink) || !kind.isIn(wire.ScopeOf(disk.SelfLink)) {
		return wire.Invalid("resource.type", disk.Type, "The referenced diskType resource cannot be found.")
	}
	if err := kind.settleSize(disk, name); err != nil {
		return err
	}
	var err error
	if disk.ProvisionedIops, err = kind.iops.settle("provisionedIops", disk.ProvisionedIops, disk.SizeGb); err != nil {
		return err
	}
	wanted := disk.ProvisionedThroughput
	if disk.ProvisionedThroughput, err = kind.throughput.settle("provisionedThroughput", wanted, disk.SizeGb); err != nil {
		return err
	}
	// Where both can be provisioned, each MiB/s takes 4 IOPS.
	if most := max(disk.ProvisionedIops/4, kind.throughput.least); disk.ProvisionedIops > 0 && disk.ProvisionedThroughput > most {
		if wanted != 0 {
			return wire.Invalid("resource.provisionedThroughput", strconv.FormatInt(wanted, 10),
				fmt.Sprintf("It must be at most %d with %d IOPS.", most, disk.ProvisionedIops))
		}
		disk.ProvisionedThroughput = most
	}
	return kind.settleAccess(disk, name)
}

// isIn reports whether a zone (zones/<zone>) or region has disks of this type.
func (k diskKind) isIn(scope string) bool {
	if isRegional := scope[0] == 'r'; isRegional {
		return k.regionalMinGb > 0
	}
	return !k.onlyRegional
}

func (k diskKind) settleSize(disk *compute.Disk, name string) error {
	disk.SizeGb = cmp.Or(disk.SizeGb, k.defaultGb)
	least := k.minGb
	if disk.Region != "" {
		least = k.regionalMinGb
	}
	size := strconv.FormatInt(disk.SizeGb, 10)
	switch {
	case disk.SizeGb < least:
		return wire.Invalid("resource.sizeGb", size, fmt.Sprintf("Disk size cannot be smaller than %d GB for disk type %s.", least, name))
	case disk.SizeGb > k.maxGb:
		return wire.Invalid("resource.sizeGb", size, fmt.Sprintf("Disk size cannot be larger than %d GB for disk type %s.", k.maxGb, name))
	}
	return nil
}

func (k diskKind) settleAccess(disk *compute.Disk, name string) error {
	if disk.AccessMode == "" && len(k.accessModes) > 0 {
		disk.AccessMode = k.accessModes[0]
	}
	if disk.AccessMode != "" && !slices.Contains(k.accessModes, disk.AccessMode) {
		return wire.Invalid("resource.accessMode", disk.AccessMode, "Access mode is not supported for disk type "+name+".")
	}
	return nil
}
