package place

import (
	"context"

	"google.golang.org/api/compute/v1"
)

// Disks are the disks of a project in one place. Each method makes one call to the API.
type Disks struct {
	Compute *compute.Service
	Project string
	Place
}

// Get reads a disk.
func (d Disks) Get(ctx context.Context, name string) (*compute.Disk, error) {
	if d.IsRegion() {
		return d.Compute.RegionDisks.Get(d.Project, d.Region, name).Context(ctx).Do()
	}
	return d.Compute.Disks.Get(d.Project, d.Zone, name).Context(ctx).Do()
}

// Type reads a type of disks.
func (d Disks) Type(ctx context.Context, name string) (*compute.DiskType, error) {
	if d.IsRegion() {
		return d.Compute.RegionDiskTypes.Get(d.Project, d.Region, name).Context(ctx).Do()
	}
	return d.Compute.DiskTypes.Get(d.Project, d.Zone, name).Context(ctx).Do()
}

// Insert begins to make a disk.
func (d Disks) Insert(ctx context.Context, disk *compute.Disk, requestID string) (*compute.Operation, error) {
	if d.IsRegion() {
		return d.Compute.RegionDisks.Insert(d.Project, d.Region, disk).RequestId(requestID).Context(ctx).Do()
	}
	return d.Compute.Disks.Insert(d.Project, d.Zone, disk).RequestId(requestID).Context(ctx).Do()
}

// Delete begins to delete a disk.
func (d Disks) Delete(ctx context.Context, name, requestID string) (*compute.Operation, error) {
	if d.IsRegion() {
		return d.Compute.RegionDisks.Delete(d.Project, d.Region, name).RequestId(requestID).Context(ctx).Do()
	}
	return d.Compute.Disks.Delete(d.Project, d.Zone, name).RequestId(requestID).Context(ctx).Do()
}

// SetLabels begins to replace the labels of a disk, unless they are others than those with a fingerprint.
func (d Disks) SetLabels(ctx context.Context, disk *compute.Disk, labels map[string]string, requestID string) (*compute.Operation, error) {
	if d.IsRegion() {
		request := &compute.RegionSetLabelsRequest{Labels: labels, LabelFingerprint: disk.LabelFingerprint}
		return d.Compute.RegionDisks.SetLabels(d.Project, d.Region, disk.Name, request).RequestId(requestID).Context(ctx).Do()
	}
	request := &compute.ZoneSetLabelsRequest{Labels: labels, LabelFingerprint: disk.LabelFingerprint}
	return d.Compute.Disks.SetLabels(d.Project, d.Zone, disk.Name, request).RequestId(requestID).Context(ctx).Do()
}

// Resize begins to make a disk larger.
func (d Disks) Resize(ctx context.Context, name string, sizeGb int64, requestID string) (*compute.Operation, error) {
	if d.IsRegion() {
		request := &compute.RegionDisksResizeRequest{SizeGb: sizeGb}
		return d.Compute.RegionDisks.Resize(d.Project, d.Region, name, request).RequestId(requestID).Context(ctx).Do()
	}
	return d.Compute.Disks.Resize(d.Project, d.Zone, name, &compute.DisksResizeRequest{SizeGb: sizeGb}).RequestId(requestID).Context(ctx).Do()
}

// Update begins to change fields of a disk. The request has its name.
func (d Disks) Update(ctx context.Context, request *compute.Disk, fields []string, requestID string) (*compute.Operation, error) {
	if d.IsRegion() {
		return d.Compute.RegionDisks.Update(d.Project, d.Region, request.Name, request).Paths(fields...).RequestId(requestID).Context(ctx).Do()
	}
	return d.Compute.Disks.Update(d.Project, d.Zone, request.Name, request).Paths(fields...).RequestId(requestID).Context(ctx).Do()
}

// Snapshot begins to make a snapshot of a disk.
func (d Disks) Snapshot(ctx context.Context, name string, wanted *compute.Snapshot, requestID string) (*compute.Operation, error) {
	if d.IsRegion() {
		return d.Compute.RegionDisks.CreateSnapshot(d.Project, d.Region, name, wanted).RequestId(requestID).Context(ctx).Do()
	}
	return d.Compute.Disks.CreateSnapshot(d.Project, d.Zone, name, wanted).RequestId(requestID).Context(ctx).Do()
}
