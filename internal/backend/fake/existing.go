package fake

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
)

// AddExisting makes a disk that somebody else made.
func (b *Backend) AddExisting(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.existing == nil {
		b.existing = map[string]attachments{}
	}
	b.existing[path] = attachments{}
}

// ExistingOn are the machines that a disk which somebody else made is attached to; nil
// where there is no such disk.
func (b *Backend) ExistingOn(path string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.existing[path] == nil {
		return nil
	}
	found := []string{}
	for to := range b.existing[path] {
		found = append(found, string(to))
	}
	return found
}

// ReleaseExisting takes a disk from all machines, and AttachExistingBehind gives it to
// one, as somebody does who doesn't ask us.
func (b *Backend) ReleaseExisting(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.existing[path] = attachments{}
}

// AttachExistingBehind attaches it to a node, as somebody does who doesn't ask us.
func (b *Backend) AttachExistingBehind(path string, node backend.NodeIdentity, readOnly bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.existing[path][machineOf(node)] = readOnly
}

// attachExisting notes that a node has what AddExisting made, or fails as FailNext said.
func (b *Backend) attachExisting(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	if err := b.enter(ctx, "Attach existing "+request.ID+" to "+request.Node.Name); err != nil {
		return backend.Attachment{}, err
	}
	defer b.mu.Unlock()
	if err := b.nextFailure(); err != nil {
		return backend.Attachment{}, err
	}
	users, exists := b.existing[request.ID]
	if !exists {
		return backend.Attachment{}, backend.NotFound.Errorf("there is no disk %s", request.ID)
	}
	to := machineOf(request.Node)
	for other, readOnly := range users {
		if other != to && (!readOnly || !request.ReadOnly) {
			return backend.Attachment{}, backend.Conflict.Errorf("disk %s is attached to %s", request.ID, other)
		}
	}
	users[to] = request.ReadOnly
	return backend.Attachment{Metadata: map[string]string{
		backend.DeviceMetadata: "existing", backend.SerialMetadata: "existing", backend.InstanceMetadata: string(to),
	}}, nil
}

// isExistingAttached returns what was noted, or fails as FailNext said.
func (b *Backend) isExistingAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	if err := b.enter(ctx, "IsAttached existing "+id+" to "+node.Name); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	if err := b.nextFailure(); err != nil {
		return false, err
	}
	_, is := b.existing[id][machineOf(node)]
	return is, nil
}

// detachExisting notes that a node hasn't it any more, or fails as FailNext said.
func (b *Backend) detachExisting(ctx context.Context, id string, node backend.NodeIdentity) error {
	if err := b.enter(ctx, "Detach existing "+id+" from "+node.Name); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if err := b.nextFailure(); err != nil {
		return err
	}
	delete(b.existing[id], machineOf(node))
	return nil
}
