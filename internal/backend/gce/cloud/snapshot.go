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

// SnapshotPath is how a snapshot is named in calls.
func (c *Client) SnapshotPath(name string) string {
	return fmt.Sprintf("projects/%s/global/snapshots/%s", c.Project, name)
}

// Snapshot reads the snapshot of a name: nil where there is none.
func (c *Client) Snapshot(ctx context.Context, name string) (*compute.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Call)
	defer cancel()
	found, err := c.compute.Snapshots.Get(c.Project, name).Context(ctx).Do()
	if reason.Of(err) == reason.NotFound {
		return nil, nil
	}
	return found, err
}

// snapshotFields are the fields of listed snapshots that are read.
const snapshotFields googleapi.Field = "items(name,description,labels,status)"

// Snapshots lists the snapshots that match a filter.
func (c *Client) Snapshots(ctx context.Context, filter string) (found []*compute.Snapshot, err error) {
	err = c.compute.Snapshots.List(c.Project).Filter(filter).MaxResults(c.limits.Page).
		Fields("nextPageToken", "warning", snapshotFields).
		Pages(ctx, func(page *compute.SnapshotList) error {
			if page.Warning != nil && page.Warning.Code == unreachable {
				return incomplete("snapshots")
			}
			found = append(found, page.Items...)
			return nil
		})
	return found, c.aboutProject(err)
}

// SetSnapshotLabel adds a label to a snapshot. The call has no request id: the fingerprint makes a repeat fail.
func (c *Client) SetSnapshotLabel(ctx context.Context, found *compute.Snapshot, key, value string) error {
	path := c.SnapshotPath(found.Name)
	request := &compute.GlobalSetLabelsRequest{Labels: labelled(found.Labels, key, value), LabelFingerprint: found.LabelFingerprint}
	err := c.do(ctx, change{
		doing: "labelling snapshot " + path,
		basis: []string{"retain", path, fmt.Sprint(found.Id), found.LabelFingerprint},
		send: func(ctx context.Context, _ string) (*compute.Operation, error) {
			return c.compute.Snapshots.SetLabels(c.Project, found.Name, request).Context(ctx).Do()
		},
	})
	return ifRelabelled("snapshot "+path, err)
}

// InsertSnapshot makes a snapshot of a disk. A second call for the same snapshot joins the first
// operation, which ends once the snapshot is ready.
func (c *Client) InsertSnapshot(ctx context.Context, of *Disk, wanted *compute.Snapshot) error {
	text, err := json.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("describing snapshot %s: %w", wanted.Name, err)
	}
	return c.do(ctx, change{
		doing: fmt.Sprintf("making snapshot %s of disk %s", wanted.Name, of.Path()),
		at:    of.At(),
		basis: []string{"snapshot", c.SnapshotPath(wanted.Name), of.Path(), of.incarnation(), string(text)},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.disksIn(of.At()).Snapshot(ctx, of.Name, wanted, requestID)
		},
	})
}

// DeleteSnapshot deletes a snapshot. Disks that were made from it stay.
func (c *Client) DeleteSnapshot(ctx context.Context, found *compute.Snapshot) error {
	path := c.SnapshotPath(found.Name)
	err := c.do(ctx, change{
		doing: "deleting snapshot " + path,
		basis: []string{"delete", path, fmt.Sprint(found.Id)},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
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
