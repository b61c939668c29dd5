package cloud

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/api/compute/v1"
)

// ofImage is an image as a snapshot. Nil is none.
func ofImage(found *compute.Image) *Snapshot {
	if found == nil {
		return nil
	}
	return &Snapshot{IsImage: true, Snapshot: &compute.Snapshot{
		Id: found.Id, Name: found.Name, Description: found.Description, Labels: found.Labels, LabelFingerprint: found.LabelFingerprint,
		Status: found.Status, CreationTimestamp: found.CreationTimestamp, DiskSizeGb: found.DiskSizeGb,
	}}
}

// images lists the images that match a filter.
func (c *Client) images(ctx context.Context, filter string) (found []*Snapshot, err error) {
	err = c.compute.Images.List(c.Project).Filter(filter).MaxResults(c.limits.Page).
		Fields("nextPageToken", "warning", snapshotFields).
		Pages(ctx, func(page *compute.ImageList) error {
			if page.Warning != nil && page.Warning.Code == unreachable {
				return incomplete("images")
			}
			for _, one := range page.Items {
				found = append(found, ofImage(one))
			}
			return nil
		})
	return found, err
}

// insertImage makes an image of a disk that no instance has. The API can make one of a disk in use by force: its content could
// be of several moments.
func (c *Client) insertImage(ctx context.Context, of *Disk, wanted *Snapshot) error {
	image := &compute.Image{
		Name: wanted.Name, Description: wanted.Description, Labels: wanted.Labels, StorageLocations: wanted.StorageLocations,
		Family: wanted.Family, SourceDisk: of.Path(),
	}
	if wanted.Key != "" {
		image.ImageEncryptionKey = &compute.CustomerEncryptionKey{KmsKeyName: wanted.Key}
	}
	text, err := json.Marshal(image)
	if err != nil {
		return fmt.Errorf("describing image %s: %w", wanted.Name, err)
	}
	return c.do(ctx, change{
		doing: fmt.Sprintf("making image %s of disk %s", wanted.Name, of.Path()),
		basis: []string{"image", c.SnapshotPath(wanted), of.Path(), of.incarnation(), string(text)},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.compute.Images.Insert(c.Project, image).RequestId(requestID).Context(ctx).Do()
		},
	})
}
