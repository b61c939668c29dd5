package cloud

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// Statuses of snapshots.
const (
	SnapshotReady    = "READY"
	SnapshotDeleting = "DELETING"
	SnapshotFailed   = "FAILED"
)

// Snapshot is a snapshot of a disk or, where IsImage is set, an image: of that, it has what snapshots have, too.
type Snapshot struct {
	*compute.Snapshot
	IsImage bool
	// Family of a new image, and the key of Cloud KMS that encrypts it: unlike a snapshot, it doesn't have its disk's by itself.
	Family, Key string
}

// SnapshotPath is how a snapshot is named in calls.
func (c *Client) SnapshotPath(of *Snapshot) string {
	if of.IsImage {
		return fmt.Sprintf("projects/%s/global/images/%s", c.Project, of.Name)
	}
	return fmt.Sprintf("projects/%s/global/snapshots/%s", c.Project, of.Name)
}

// Snapshot reads the snapshot, or the image, of a name: nil where there is none.
func (c *Client) Snapshot(ctx context.Context, name string, isImage bool) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	read := func() (*Snapshot, error) {
		found, err := c.compute.Snapshots.Get(c.Project, name).Context(ctx).Do()
		return &Snapshot{Snapshot: found}, err
	}
	if isImage {
		read = func() (*Snapshot, error) {
			found, err := c.compute.Images.Get(c.Project, name).Context(ctx).Do()
			return ofImage(found), err
		}
	}
	found, err := read()
	switch {
	case reason.Of(err) == reason.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return found, nil
}

// snapshotFields are the fields of listed snapshots and images that are read.
const snapshotFields googleapi.Field = "items(name,description,labels,status)"

// Snapshots lists the snapshots and the images that match a filter.
func (c *Client) Snapshots(ctx context.Context, filter string) (found []*Snapshot, err error) {
	err = c.compute.Snapshots.List(c.Project).Filter(filter).MaxResults(c.limits.Page).
		Fields("nextPageToken", "warning", snapshotFields).
		Pages(ctx, func(page *compute.SnapshotList) error {
			if page.Warning != nil && page.Warning.Code == unreachable {
				return incomplete("snapshots")
			}
			for _, one := range page.Items {
				found = append(found, &Snapshot{Snapshot: one})
			}
			return nil
		})
	if err != nil {
		return found, c.aboutProject(err)
	}
	images, err := c.images(ctx, filter)
	return append(found, images...), c.aboutProject(err)
}

// SetSnapshotLabel adds a label to a snapshot. The call has no request id: the fingerprint makes a repeat fail.
func (c *Client) SetSnapshotLabel(ctx context.Context, found *Snapshot, key, value string) error {
	path := c.SnapshotPath(found)
	request := &compute.GlobalSetLabelsRequest{Labels: labelled(found.Labels, key, value), LabelFingerprint: found.LabelFingerprint}
	err := c.do(ctx, change{
		doing: "labelling snapshot " + path,
		basis: []string{"retain", path, fmt.Sprint(found.Id), found.LabelFingerprint},
		send: func(ctx context.Context, _ string) (*compute.Operation, error) {
			if found.IsImage {
				return c.compute.Images.SetLabels(c.Project, found.Name, request).Context(ctx).Do()
			}
			return c.compute.Snapshots.SetLabels(c.Project, found.Name, request).Context(ctx).Do()
		},
	})
	return ifRelabelled("snapshot "+path, err)
}

// InsertSnapshot makes a snapshot of a disk. A second call for the same snapshot joins the first
// operation, which ends once the snapshot is ready.
func (c *Client) InsertSnapshot(ctx context.Context, of *Disk, wanted *Snapshot) error {
	if wanted.IsImage {
		return c.insertImage(ctx, of, wanted)
	}
	text, err := json.Marshal(wanted.Snapshot)
	if err != nil {
		return fmt.Errorf("describing snapshot %s: %w", wanted.Name, err)
	}
	return c.do(ctx, change{
		doing: fmt.Sprintf("making snapshot %s of disk %s", wanted.Name, of.Path()),
		at:    of.At(),
		basis: []string{"snapshot", c.SnapshotPath(wanted), of.Path(), of.incarnation(), string(text)},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.disksIn(of.At()).Snapshot(ctx, of.Name, wanted.Snapshot, requestID)
		},
	})
}

// DeleteSnapshot deletes a snapshot. Disks that were made from it stay.
func (c *Client) DeleteSnapshot(ctx context.Context, found *Snapshot) error {
	path := c.SnapshotPath(found)
	err := c.do(ctx, change{
		doing: "deleting snapshot " + path,
		basis: []string{"delete", path, fmt.Sprint(found.Id)},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			if found.IsImage {
				return c.compute.Images.Delete(c.Project, found.Name).RequestId(requestID).Context(ctx).Do()
			}
			return c.compute.Snapshots.Delete(c.Project, found.Name).RequestId(requestID).Context(ctx).Do()
		},
	})
	switch reason.Of(err) {
	case reason.NotFound:
		return nil
	case reason.InUse:
		return backend.InProgress.Errorf("snapshot %s is in use: it is deleted once it isn't: %w", path, err)
	case reason.NotReady:
		if found.Status != SnapshotReady && found.Status != SnapshotFailed {
			return backend.InProgress.Errorf("snapshot %s is %s: it is deleted after that: %w", path, found.Status, err)
		}
	}
	return err
}
