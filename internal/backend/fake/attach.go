package fake

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

var (
	_ backend.Attacher         = (*Backend)(nil)
	_ backend.AttachmentLister = (*Backend)(nil)
	_ backend.NodeObserver     = (*Backend)(nil)
)

func machineOf(node backend.NodeIdentity) machine {
	if node.ProviderID != "" {
		return machine(node.ProviderID)
	}
	return machine("fake:///" + node.Name)
}

// Attach attaches a volume, or a disk of AddExisting, to a node, or fails as FailNext said.
func (b *Backend) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	if err := b.begin(ctx, called("Attach", request.ID)+" to "+request.Node.Name); err != nil {
		return backend.Attachment{}, err
	}
	defer b.mu.Unlock()
	if err := b.canAttach(request); err != nil {
		return backend.Attachment{}, err
	}
	to := machineOf(request.Node)
	b.setAttached(request.ID, to, request.ReadOnly)
	device := request.ID
	if b.existing[device] {
		device = "existing"
	}
	return backend.Attachment{Metadata: map[string]string{
		backend.DeviceMetadata: device, backend.SerialMetadata: device, backend.InstanceMetadata: string(to),
	}}, nil
}

// called is a call as Calls lists it.
func called(operation, id string) string {
	if volume.IsDiskPath(id) {
		operation += " existing"
	}
	return operation + " " + id
}

func (b *Backend) setAttached(id string, to machine, readOnly bool) {
	if b.attached[id] == nil {
		b.attached[id] = attachments{}
	}
	b.attached[id][to] = readOnly
}

func (b *Backend) canAttach(request backend.AttachRequest) error {
	to := machineOf(request.Node)
	if _, exists := b.volumes[request.ID]; !exists && !b.existing[request.ID] {
		return backend.NotFound.Errorf("there is no volume %s", request.ID)
	}
	if b.machines[to] == backend.MachineGone {
		return backend.WrongNode.Errorf("node %s has no machine", request.Node.Name)
	}
	for other, readOnly := range b.attached[request.ID] {
		switch {
		case other != to && readOnly && request.ReadOnly:
		case other != to:
			return backend.Conflict.Errorf("volume %s is attached to %s", request.ID, other)
		case readOnly != request.ReadOnly:
			return backend.Conflict.Errorf("volume %s is attached to %s in another way", request.ID, other)
		}
	}
	return nil
}

// Detach detaches a volume or a disk from a node, or fails as FailNext said.
func (b *Backend) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	if err := b.begin(ctx, called("Detach", id)+" from "+node.Name); err != nil {
		return err
	}
	defer b.mu.Unlock()
	delete(b.attached[id], machineOf(node))
	return nil
}

// IsAttached reports whether a node has a volume or a disk, or fails as FailNext said.
func (b *Backend) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	if err := b.begin(ctx, called("IsAttached", id)+" to "+node.Name); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	_, is := b.attached[id][machineOf(node)]
	return is || node.ProviderID == "" && len(b.attached[id]) > 0, nil
}

// Attachments returns the attached volumes, by volume and machine.
func (b *Backend) Attachments(context.Context) ([]backend.Attached, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.listing; err != nil {
		return nil, err
	}
	var found []backend.Attached
	for _, id := range slices.Sorted(maps.Keys(b.attached)) {
		if b.unlisted[id] || b.existing[id] {
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(b.attached[id])) {
			found = append(found, backend.Attached{ID: id, ProviderID: string(to), ReadOnly: b.attached[id][to]})
		}
	}
	return found, nil
}

// ObserveNode returns what SetMachine set; any other machine runs.
func (b *Backend) ObserveNode(ctx context.Context, node backend.NodeIdentity) (backend.Machine, error) {
	if err := b.enter(ctx, "ObserveNode "+node.Name); err != nil {
		return backend.MachineUnknown, err
	}
	defer b.mu.Unlock()
	if b.observing != nil {
		return backend.MachineUnknown, b.observing
	}
	if state, known := b.machines[machineOf(node)]; known {
		return state, nil
	}
	return backend.MachineRuns, nil
}

// SetMachine sets what ObserveNode returns for a node. A machine that is gone loses its volumes.
func (b *Backend) SetMachine(node backend.NodeIdentity, state backend.Machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machines[machineOf(node)] = state
	if state == backend.MachineGone {
		for _, of := range b.attached {
			delete(of, machineOf(node))
		}
	}
}

// AttachBehind attaches a volume to a node, as another program does.
func (b *Backend) AttachBehind(id string, node backend.NodeIdentity) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setAttached(id, machineOf(node), false)
}

// DetachBehind detaches a volume from all nodes, as another program does.
func (b *Backend) DetachBehind(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.attached, id)
}

// Unlist hides a volume from Attachments, as replaced labels do.
func (b *Backend) Unlist(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unlisted[id] = true
}

// FailListing makes Attachments return this from now on.
func (b *Backend) FailListing(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listing = err
}

// FailObserving makes ObserveNode return this from now on.
func (b *Backend) FailObserving(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.observing = err
}

// AttachedTo returns the provider's ids of the machines that have a volume, in order.
func (b *Backend) AttachedTo(id string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []string
	for _, to := range slices.Sorted(maps.Keys(b.attached[id])) {
		found = append(found, string(to))
	}
	return found
}
