package cloud

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/api/compute/v1"
)

// Performance is what a disk is provisioned with: IOPS, and throughput in MiB/s. 0 leaves one as it is, and in a new disk to
// its type.
type Performance struct{ IOPS, Throughput int64 }

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

// update is the request that gives a disk this performance, and the fields that change.
func (p Performance) update(found *Disk) (request *compute.Disk, fields []string) {
	request = &compute.Disk{Name: found.Name}
	if p.IOPS != 0 && p.IOPS != found.ProvisionedIops {
		request.ProvisionedIops, fields = p.IOPS, append(fields, "provisionedIops")
	}
	if p.Throughput != 0 && p.Throughput != found.ProvisionedThroughput {
		request.ProvisionedThroughput, fields = p.Throughput, append(fields, "provisionedThroughput")
	}
	return request, fields
}

// SetPerformance changes what a disk is provisioned with. The API knows which types can change, and within which bounds.
func (c *Client) SetPerformance(ctx context.Context, found *Disk, wanted Performance) error {
	request, fields := wanted.update(found)
	if len(fields) == 0 {
		return nil
	}
	return c.do(ctx, change{
		doing: fmt.Sprintf("giving disk %s %s", found.Path(), wanted),
		zone:  found.ZoneName(),
		basis: []string{
			"perform", found.Path(), found.incarnation(), fmt.Sprint(found.ProvisionedIops, found.ProvisionedThroughput), fmt.Sprint(wanted.IOPS, wanted.Throughput),
		},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.compute.Disks.Update(c.Project, found.ZoneName(), found.Name, request).Paths(fields...).RequestId(requestID).Context(ctx).Do()
		},
		isSeen: func(ctx context.Context) (bool, error) {
			now, err := c.Disk(ctx, found.ZoneName(), found.Name)
			if now == nil || err != nil {
				return false, err
			}
			_, still := wanted.update(now)
			return len(still) == 0, nil
		},
	})
}
