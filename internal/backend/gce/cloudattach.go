package gce

import (
	"context"
	"fmt"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// manner is how a disk is attached.
type manner struct{ device, mode string }

// ensureAttached finds a disk attached to a node's instance as it is to be, or attaches
// it.
func (c *cloud) ensureAttached(ctx context.Context, found *disk, node backend.NodeIdentity, at place, as manner) error {
	on, err := c.instance(ctx, at)
	switch {
	case err != nil:
		return err
	case on == nil:
		return backend.WrongNode.Errorf("node %s has no instance: there is no %s any more", node.Name, at.providerID())
	}
	isAttached, err := c.checkAttached(ctx, found, on, as)
	if err == nil && !isAttached {
		err = c.attachDisk(ctx, found, on, as)
	}
	return err
}

// checkAttached tells whether a disk is attached to an instance as it is to be. What is
// attached in another way was attached by somebody else, or for something else.
func (c *cloud) checkAttached(ctx context.Context, found *disk, on *instance, as manner) (bool, error) {
	has := on.attachedDisk(found.path())
	switch {
	case has == nil:
		return false, checkFree(found, on, as)
	case has.DeviceName != as.device || has.AutoDelete:
		return false, backend.Conflict.Errorf("disk %s is attached to instance %s by somebody else, as device %s: detach it there",
			found.path(), on.at.name, has.DeviceName)
	case has.Mode != as.mode:
		return false, backend.Conflict.Errorf("disk %s is attached to instance %s as %s, and is to be %s: it has to be detached first",
			found.path(), on.at.name, has.Mode, as.mode)
	}
	// It may be on its way out.
	if err := c.settle(ctx, on, "detachDisk"); err != nil {
		return false, err
	}
	now, err := c.instance(ctx, on.at)
	if err == nil && (now == nil || now.attachedDisk(found.path()) == nil) {
		err = backend.NotReady.Errorf("disk %s was being detached from instance %s: it is attached anew", found.path(), on.at.name)
	}
	return err == nil, err
}

// checkFree looks for what is in the way of attaching a disk. Whether others read it, or
// attach it now, the API knows.
func checkFree(found *disk, on *instance, as manner) error {
	if other := on.deviceNamed(as.device); other != nil {
		return backend.Conflict.Errorf("instance %s has another disk, %s, as device %s: detach that one", on.at.name, pathOf(other.Source), as.device)
	}
	for _, user := range found.Users {
		if pathOf(user) == pathOf(on.SelfLink) {
			return backend.NotReady.Errorf("disk %s was attached to instance %s, and was detached meanwhile: it is attached anew", found.path(), on.at.name)
		}
		if as.mode == readWrite {
			return backend.Conflict.Errorf("disk %s is attached to instance %s: it can be written on one only", found.path(), nameOf(user))
		}
	}
	return nil
}

func (c *cloud) attachDisk(ctx context.Context, found *disk, on *instance, as manner) error {
	asked := &compute.AttachedDisk{
		Source: found.path(), DeviceName: as.device, Mode: as.mode, Type: "PERSISTENT",
		ForceSendFields: []string{"AutoDelete"},
	}
	err := c.make(ctx, change{
		doing: fmt.Sprintf("attaching disk %s to instance %s", found.path(), on.at.name),
		zone:  on.at.zone,
		basis: append([]string{"attach", as.mode}, standing(found, on)...),
		ask: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.compute.Instances.AttachDisk(on.at.project, on.at.zone, on.at.name, asked).RequestId(requestID).Context(ctx).Do()
		},
		isSeen: func(ctx context.Context) (bool, error) {
			now, err := c.instance(ctx, on.at)
			return now != nil && now.attachedDisk(found.path()) != nil, err
		},
	})
	switch reasonOf(err) {
	case inUse:
		return backend.Conflict.Errorf("disk %s is attached elsewhere: it has to be detached there first: %w", found.path(), err)
	case overLimit:
		return backend.Exhausted.Errorf("instance %s has as many disks as it can have: place the pod elsewhere: %w", on.at.name, err)
	case notFound:
		return c.explainAbsence(ctx, found, on, err)
	case notReady:
		return backend.NotReady.Errorf("disk %s or instance %s isn't ready for the other: it is tried again: %w", found.path(), on.at.name, err)
	}
	return err
}

// explainAbsence returns what an answer means that the disk or the instance isn't there,
// though both were a moment ago.
func (c *cloud) explainAbsence(ctx context.Context, found *disk, on *instance, refused error) error {
	now, err := c.instance(ctx, on.at)
	switch {
	case err != nil:
		return err
	case now == nil:
		return backend.WrongNode.Errorf("there is no instance %s any more: %w", on.at.providerID(), refused)
	}
	still, err := c.disk(ctx, on.at.zone, found.Name)
	switch {
	case err != nil:
		return err
	case still == nil:
		return backend.NotFound.Errorf("there is no disk %s any more: %w", found.path(), refused)
	}
	return backend.NotReady.Errorf("the Compute API says that disk %s, its key, or instance %s isn't there, and both are: it is tried again: %w",
		found.path(), on.at.name, refused)
}

// standing is what attaching and detaching are decided on. Whatever was attached or
// detached since is another standing, so that what is asked for again is done again.
func standing(found *disk, on *instance) []string {
	return []string{found.path(), found.incarnation(), on.at.providerID(), idOf(on.Id), found.LastAttachTimestamp, found.LastDetachTimestamp}
}

// checkReady is an error where a disk can't be attached now.
func (d *disk) checkReady() error {
	switch d.Status {
	case diskReady:
		return nil
	case diskDeleting:
		return backend.Conflict.Errorf("disk %s is being deleted: it isn't attached any more", d.path())
	case diskFailed:
		return backend.Invalid.Errorf("disk %s is FAILED, and can't be attached: delete its claim, and make a new one", d.path())
	default:
		return backend.InProgress.Errorf("disk %s is %s: waiting for it to be READY", d.path(), d.Status)
	}
}
