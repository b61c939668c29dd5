package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// InsertDisk makes a disk in a place. A second call for the same disk joins the first operation.
func (c *Client) InsertDisk(ctx context.Context, at place.Place, disk *compute.Disk) error {
	text, err := json.Marshal(disk)
	if err != nil {
		return fmt.Errorf("describing disk %s: %w", disk.Name, err)
	}
	return c.do(ctx, change{
		doing: fmt.Sprintf("making disk %s in %s", disk.Name, at),
		at:    at,
		basis: []string{"insert", c.DiskPath(at, disk.Name), string(text)},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.disksIn(at).Insert(ctx, disk, requestID)
		},
	})
}

// SetLabel adds a label to a disk. The basis has no label in it: only one is ever set.
func (c *Client) SetLabel(ctx context.Context, found *Disk, key, value string) error {
	err := c.do(ctx, change{
		doing: "labelling disk " + found.Path(),
		at:    found.At(),
		basis: []string{"retain", found.Path(), found.incarnation(), found.LabelFingerprint},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			// The fingerprint protects labels that another client adds.
			return c.disksIn(found.At()).SetLabels(ctx, found.Disk, labelled(found.Labels, key, value), requestID)
		},
		isSeen: func(ctx context.Context) (bool, error) {
			now, err := c.Disk(ctx, found.At(), found.Name)
			return now != nil && now.Labels[key] != "", err
		},
	})
	return ifRelabelled("disk "+found.Path(), err)
}

// labelled is labels with one more.
func labelled(labels map[string]string, key, value string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, labels)
	all[key] = value
	return all
}

// ifRelabelled explains the error of a call that another client's change of labels made fail.
func ifRelabelled(what string, err error) error {
	if reason.Of(err) == reason.ConditionNotMet {
		return backend.InProgress.Errorf("the labels of %s have changed: Stowage sets them again: %w", what, err)
	}
	return err
}

// Resize makes a disk the smallest of its type with a capacity. The caller checks that it is
// smaller.
func (c *Client) Resize(ctx context.Context, found *Disk, capacity resource.Quantity) error {
	can, err := c.DiskType(ctx, found.At(), NameOf(found.Type))
	if err != nil {
		return err
	}
	sizeGb, err := can.AtLeast(capacity)
	if err != nil {
		return err
	}
	return c.do(ctx, change{
		doing: fmt.Sprintf("growing disk %s to %dGi", found.Path(), sizeGb),
		at:    found.At(),
		basis: []string{"resize", found.Path(), found.incarnation(), fmt.Sprint(found.SizeGb), fmt.Sprint(sizeGb)},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.disksIn(found.At()).Resize(ctx, found.Name, sizeGb, requestID)
		},
	})
}

// Update changes fields of a disk. The update has the request and the fields that change, none where a disk is as wanted; the
// words tell it from every other. The API knows which types of disks can have what.
func (c *Client) Update(ctx context.Context, found *Disk, words string, update func(*compute.Disk) (request *compute.Disk, fields []string)) error {
	request, fields := update(found.Disk)
	if len(fields) == 0 {
		return nil
	}
	return c.do(ctx, change{
		doing: fmt.Sprintf("giving disk %s %s", found.Path(), words),
		at:    found.At(),
		basis: []string{"update", found.Path(), found.incarnation(), fmt.Sprint(found.ProvisionedIops, found.ProvisionedThroughput), words},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.disksIn(found.At()).Update(ctx, request, fields, requestID)
		},
		once: true,
		isSeen: func(ctx context.Context) (bool, error) {
			now, err := c.Disk(ctx, found.At(), found.Name)
			if err != nil {
				return false, err
			}
			if now == nil || now.incarnation() != found.incarnation() {
				return false, c.NoDisk(found.Name)
			}
			_, still := update(now.Disk)
			return len(still) == 0, nil
		},
	})
}
