package gce

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// mib is what throughput is counted in, in bytes.
const mib = 1 << 20

// Modify gives the volume's disk the performance that a VolumeAttributesClass names, attached or not.
func (b *gceBackend) Modify(ctx context.Context, id string, attributes backend.Attributes) error {
	wanted, err := performanceOf(attributes)
	if err != nil {
		return err
	}
	_, err = inCloud(ctx, b, "changing volume "+id, func(c *cloud.Client) (struct{}, error) {
		return struct{}{}, aboutClass(attributes, b.modify(ctx, c, id, wanted))
	})
	return err
}

// modify changes a disk that has another performance. A list may lag behind: the disk itself is read.
func (b *gceBackend) modify(ctx context.Context, c *cloud.Client, id string, wanted cloud.Performance) error {
	found, err := b.ownDisk(ctx, c, id)
	if err == nil && found != nil {
		listed := found.Id
		found, err = c.Disk(ctx, found.ZoneName(), id)
		if found != nil && found.Id != listed {
			found = nil
		}
	}
	switch {
	case err != nil:
		return err
	case found == nil:
		return c.NoDisk(id)
	case found.Status == cloud.DiskDeleting:
		return backend.NotFound.Errorf("it is too late to change disk %s: it is being deleted", found.Path())
	case found.Status != cloud.DiskReady:
		return backend.InProgress.Errorf("disk %s is %s: waiting for it to be READY", found.Path(), found.Status)
	}
	return c.SetPerformance(ctx, found, wanted)
}

// performanceOf reads a class, whose parameters are those that Google's CSI driver knows.
func performanceOf(attributes backend.Attributes) (wanted cloud.Performance, err error) {
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

// aboutClass explains that the Compute API refused what a class asks for.
func aboutClass(attributes backend.Attributes, err error) error {
	if cloud.ReasonOf(err) != cloud.Invalid {
		return err
	}
	return backend.Invalid.Errorf("the disk can't have the iops or the throughput of VolumeAttributesClass %s, for its type and its size: %w", attributes.Class, err)
}
