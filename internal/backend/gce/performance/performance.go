// Package performance reads what a VolumeAttributesClass says of a disk, and compares disks with that. It calls no API: the
// Compute API alone knows which types of disks can have what.
package performance

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// mib is what throughput is counted in, in bytes.
const mib = 1 << 20

// Performance is what a disk is provisioned with: IOPS, and throughput in MiB/s. 0 leaves one as it is, and in a new disk to
// its type.
type Performance struct{ IOPS, Throughput int64 }

// bytesPerSecond is a throughput that can be parsed at no cost: a quantity with an exponent can stand for a number of any length.
var bytesPerSecond = regexp.MustCompile(`^\d{1,12}(\.\d{1,9})?([kMGT]|[KMGT]i)?$`)

// Of reads a class, whose parameters are those that Google's CSI driver knows, in whatever letters. Its errors are of kind
// Invalid.
func Of(attributes backend.Attributes) (wanted Performance, err error) {
	for _, name := range slices.Sorted(maps.Keys(attributes.Parameters)) {
		value := attributes.Parameters[name]
		switch strings.ToLower(name) {
		case "iops":
			wanted.IOPS, err = strconv.ParseInt(value, 10, 64)
			if err != nil || wanted.IOPS <= 0 {
				return wanted, backend.Invalid.Errorf("VolumeAttributesClass %s: iops %.100q is no number of IOPS: make a class with one such as 5000",
					attributes.Class, value)
			}
		case "throughput":
			if wanted.Throughput = MiBIn(value); wanted.Throughput == 0 {
				return wanted, backend.Invalid.Errorf("VolumeAttributesClass %s: throughput %.100q is no number of bytes per second: make a class with one such as 250Mi",
					attributes.Class, value)
			}
		default:
			return wanted, backend.Invalid.Errorf("VolumeAttributesClass %s has the parameter %.100q: disks know only iops and throughput", attributes.Class, name)
		}
	}
	return wanted, nil
}

// MiBIn reads a throughput, rounded up to MiB/s; 0 where it is none.
func MiBIn(text string) int64 {
	if !bytesPerSecond.MatchString(text) {
		return 0
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Value() < mib {
		return 0
	}
	return (quantity.Value()-1)/mib + 1
}

// String lists what is provisioned, for people.
func (p Performance) String() string {
	var words []string
	if p.IOPS != 0 {
		words = append(words, fmt.Sprintf("%d IOPS", p.IOPS))
	}
	if p.Throughput != 0 {
		words = append(words, fmt.Sprintf("%d MiB/s", p.Throughput))
	}
	return strings.Join(words, " and ")
}

// Update is the request that gives a disk this performance, and the fields that change; none where it has it.
func (p Performance) Update(found *compute.Disk) (request *compute.Disk, fields []string) {
	request = &compute.Disk{Name: found.Name}
	if p.IOPS != 0 && p.IOPS != found.ProvisionedIops {
		request.ProvisionedIops, fields = p.IOPS, append(fields, "provisionedIops")
	}
	if p.Throughput != 0 && p.Throughput != found.ProvisionedThroughput {
		request.ProvisionedThroughput, fields = p.Throughput, append(fields, "provisionedThroughput")
	}
	return request, fields
}
