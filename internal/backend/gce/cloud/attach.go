package cloud

import (
	"context"
	"fmt"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// AttachOptions are the device name and the mode of an attached disk.
type AttachOptions struct {
	Device, Mode string
	// Shared has no file system, and may be written by several instances where the disk can.
	Shared bool
	// takes has the storage take a replicated disk from instances in zones that are down.
	takes bool
}

// EnsureAttached attaches a disk to a node's instance, unless it is attached with these options.
func (c *Client) EnsureAttached(ctx context.Context, found *Disk, node backend.NodeIdentity, at InstanceRef, as AttachOptions) error {
	on, err := c.instance(ctx, at)
	switch {
	case err != nil:
		return err
	case on == nil:
		return backend.WrongNode.Errorf("node %s has no instance: there is no %s", node.Name, at.ProviderID())
	}
	if as.takes, err = c.mayTake(ctx, found, on, as.Mode); err != nil {
		return err
	}
	isAttached, err := c.checkAttached(ctx, found, on, as)
	if err == nil && !isAttached {
		err = c.attachDisk(ctx, found, on, as)
	}
	return err
}

// checkAttached reports whether a disk is attached to an instance with these options. With other
// options another program attached it, or Stowage for another purpose: that is a Conflict.
func (c *Client) checkAttached(ctx context.Context, found *Disk, on *Instance, as AttachOptions) (bool, error) {
	has := on.attachedDisk(found.Path())
	switch {
	case has == nil:
		return false, checkFree(found, on, as)
	case has.DeviceName != as.Device || has.AutoDelete:
		return false, backend.Conflict.Errorf("disk %s is attached to instance %s by another program, as device %s: detach it there",
			found.Path(), on.At.Name, has.DeviceName)
	case has.Mode != as.Mode:
		return false, backend.Conflict.Errorf("disk %s is attached to instance %s as %s, and is to be %s: it has to be detached first",
			found.Path(), on.At.Name, has.Mode, as.Mode)
	}
	// A detach may be in progress.
	if err := c.awaitOperations(ctx, on, "detachDisk"); err != nil {
		return false, err
	}
	now, err := c.instance(ctx, on.At)
	if err == nil && (now == nil || now.attachedDisk(found.Path()) == nil) {
		err = backend.NotReady.Errorf("disk %s was being detached from instance %s: it is attached again", found.Path(), on.At.Name)
	}
	return err == nil, err
}

// checkFree returns an error where a disk can't be attached. Whether others read it, or attach it
// at the same time, the API checks.
func checkFree(found *Disk, on *Instance, as AttachOptions) error {
	if other := on.deviceNamed(as.Device); other != nil {
		return backend.Conflict.Errorf("instance %s has another disk, %s, as device %s: detach that one", on.At.Name, PathOf(other.Source), as.Device)
	}
	sharing := as.takes || as.Shared && found.IsWrittenByMany()
	for _, user := range found.Users {
		if PathOf(user) == PathOf(on.SelfLink) {
			return backend.NotReady.Errorf("disk %s was attached to instance %s, and was detached during this call: it is attached again", found.Path(), on.At.Name)
		}
		if as.Mode == ReadWrite && !sharing {
			return backend.Conflict.Errorf("disk %s is attached to instance %s: it can be written on one only", found.Path(), NameOf(user))
		}
	}
	return nil
}

func (c *Client) attachDisk(ctx context.Context, found *Disk, on *Instance, as AttachOptions) error {
	disk := &compute.AttachedDisk{
		Source: found.Path(), DeviceName: as.Device, Mode: as.Mode, Type: "PERSISTENT",
		ForceSendFields: []string{"AutoDelete"},
	}
	err := c.do(ctx, change{
		doing: fmt.Sprintf("attaching disk %s to instance %s", found.Path(), on.At.Name),
		at:    place.Zone(on.At.Zone),
		basis: append([]string{map[bool]string{false: "attach", true: "attach by force"}[as.takes], as.Mode}, attachBasis(found, on)...),
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			call := c.compute.Instances.AttachDisk(on.At.Project, on.At.Zone, on.At.Name, disk)
			if as.takes {
				call = call.ForceAttach(true)
			}
			return call.RequestId(requestID).Context(ctx).Do()
		},
		isSeen: func(ctx context.Context) (bool, error) {
			now, err := c.instance(ctx, on.At)
			return now != nil && now.attachedDisk(found.Path()) != nil, err
		},
	})
	switch why := reason.Of(err); {
	case why == reason.InUse && as.Shared && found.IsWrittenByMany():
		return backend.Exhausted.Errorf("disk %s is attached to as many instances as can have it, or is just being attached: detach it elsewhere: %w", found.Path(), err)
	case why == reason.InUse:
		return backend.Conflict.Errorf("disk %s is attached elsewhere: it has to be detached there first: %w", found.Path(), err)
	case why == reason.OverLimit:
		return backend.Exhausted.Errorf("instance %s has as many disks as it can have: place the pod elsewhere: %w", on.At.Name, err)
	case why == reason.Invalid:
		return backend.Invalid.Errorf("instance %s can't have disk %s, of type %s: place the pod on a node whose machine type can: %w",
			on.At.Name, found.Path(), NameOf(found.Type), err)
	case why == reason.NotFound:
		return c.explainAbsence(ctx, found, on, err)
	case why == reason.NotReady:
		return backend.NotReady.Errorf("disk %s or instance %s isn't ready for the other: it is tried again: %w", found.Path(), on.At.Name, err)
	}
	return err
}

// explainAbsence explains an answer that the disk or the instance doesn't exist, though both did a
// moment ago.
func (c *Client) explainAbsence(ctx context.Context, found *Disk, on *Instance, refused error) error {
	now, err := c.instance(ctx, on.At)
	switch {
	case err != nil:
		return err
	case now == nil:
		return backend.WrongNode.Errorf("there is no instance %s any more: %w", on.At.ProviderID(), refused)
	}
	still, err := c.Disk(ctx, found.At(), found.Name)
	switch {
	case err != nil:
		return err
	case still == nil:
		return backend.NotFound.Errorf("there is no disk %s any more: %w", found.Path(), refused)
	}
	return backend.NotReady.Errorf("the Compute API says that disk %s, its key, or instance %s isn't there, and both are: it is tried again: %w",
		found.Path(), on.At.Name, refused)
}

// CheckReady returns an error where a disk can't be attached now.
func (d *Disk) CheckReady() error {
	switch d.Status {
	case DiskReady:
		return nil
	case DiskDeleting:
		return backend.Conflict.Errorf("disk %s is being deleted: it isn't attached any more", d.Path())
	case DiskFailed:
		return backend.Invalid.Errorf("disk %s is FAILED, and can't be attached: delete its claim, and make a new one", d.Path())
	default:
		return backend.InProgress.Errorf("disk %s is %s: waiting for it to be READY", d.Path(), d.Status)
	}
}
