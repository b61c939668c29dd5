// Package performance reads what a VolumeAttributesClass says of a disk, and compares disks with that. It calls no API: the
// Compute API alone knows which types of disks can have what.
package performance

import (
	"fmt"
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

// Of reads a class, whose parameters are those that Google's CSI driver knows. Its errors are of kind Invalid.
func Of(attributes backend.Attributes) (wanted Performance, err error) {
	for name, value := range attributes.Parameters {
		switch name {
		case "iops":
			wanted.IOPS, err = strconv.ParseInt(value, 10, 64)
			if err != nil || wanted.IOPS <= 0 {
				return wanted, backend.Invalid.Errorf("VolumeAttributesClass %s: iops %.100q is no number of IOPS: make a class with one such as 5000",
					attributes.Class, value)
			}
		case "throughput":
			bytes, err := resource.ParseQuantity(value)
			if err != nil || bytes.Value() < mib {
				return wanted, backend.Invalid.Errorf("VolumeAttributesClass %s: throughput %.100q is no number of bytes per second: make a class with one such as 250Mi",
					attributes.Class, value)
			}
			wanted.Throughput = (bytes.Value()-1)/mib + 1
		default:
			return wanted, backend.Invalid.Errorf("VolumeAttributesClass %s has the parameter %.100q: disks know only iops and throughput", attributes.Class, name)
		}
	}
	return wanted, nil
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
