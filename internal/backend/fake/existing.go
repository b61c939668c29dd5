package fake

import "github.com/stowage-dev/stowage/internal/backend"

// AddExisting adds a disk that Stowage didn't make.
func (b *Backend) AddExisting(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.existing[path] = true
}

// ExistingOn returns the machines that a disk of AddExisting is attached to; nil where there is no
// such disk.
func (b *Backend) ExistingOn(path string) []string {
	found := b.AttachedTo(path)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.existing[path] && found == nil {
		return []string{}
	}
	return found
}

// ReleaseExisting detaches a disk from all machines, as another program does.
func (b *Backend) ReleaseExisting(path string) { b.DetachBehind(path) }

// AttachExistingBehind attaches a disk to a node, as another program does.
func (b *Backend) AttachExistingBehind(path string, node backend.NodeIdentity, readOnly bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setAttached(path, machineOf(node), readOnly)
}
