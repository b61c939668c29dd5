// Package memory has what the reconciler of nodes remembers between passes, because the cache
// does not show it yet. That is which node has a volume reserved, which attachments this
// process created or deleted, and which situations of a node have an event. All of it may be lost at any
// time; live reads decide then.
package memory

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reservations keep this process from giving one volume to two nodes at the same time. A
// reservation lasts until the attachment is in the cache, where all workers see it. The zero
// value is usable.
type Reservations struct {
	mu sync.Mutex
	by map[corev1.UniqueVolumeName]string
}

// Reserve reserves a volume for a node, unless another one has it. It reports whether it is
// reserved for the node now.
func (r *Reservations) Reserve(volume corev1.UniqueVolumeName, node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, reserved := r.by[volume]; reserved {
		return other == node
	}
	if r.by == nil {
		r.by = map[corev1.UniqueVolumeName]string{}
	}
	r.by[volume] = node
	return true
}

// NodeOf returns the node that a volume is reserved for.
func (r *Reservations) NodeOf(volume corev1.UniqueVolumeName) (node string, reserved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	node, reserved = r.by[volume]
	return node, reserved
}

// Release drops a reservation of a node that did not get the volume.
func (r *Reservations) Release(volume corev1.UniqueVolumeName, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[volume] == node {
		delete(r.by, volume)
	}
}

// ReleaseBut drops all reservations of a node but those that it still awaits.
func (r *Reservations) ReleaseBut(node string, awaits func(corev1.UniqueVolumeName) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for volume, by := range r.by {
		if by == node && !awaits(volume) {
			delete(r.by, volume)
		}
	}
}

// CreatedAttachments are the attachments that this process created and has not deleted. The zero
// value is usable.
type CreatedAttachments struct{ uids sync.Map }

// Add remembers an attachment that was created.
func (c *CreatedAttachments) Add(uid types.UID) { c.uids.Store(uid, nil) }

// Remove forgets an attachment that was deleted.
func (c *CreatedAttachments) Remove(uid types.UID) { c.uids.Delete(uid) }

// Has reports whether this process created an attachment and has not deleted it.
func (c *CreatedAttachments) Has(uid types.UID) bool {
	_, has := c.uids.Load(uid)
	return has
}

// DeletedAttachments are the attachments that this process deleted, until the cache shows it. The zero value is usable.
type DeletedAttachments struct {
	mu sync.Mutex
	by map[string]map[types.UID]metav1.Time
}

// Add remembers an attachment of a node that was deleted now.
func (d *DeletedAttachments) Add(node string, uid types.UID, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by[node] == nil {
		if d.by == nil {
			d.by = map[string]map[types.UID]metav1.Time{}
		}
		d.by[node] = map[types.UID]metav1.Time{}
	}
	d.by[node][uid] = metav1.NewTime(now)
}

// Mark marks those of a node's attachments as deleted that are, and forgets those that are shown so already, or no more.
func (d *DeletedAttachments) Mark(node string, shown []storagev1.VolumeAttachment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := map[types.UID]metav1.Time{}
	for i := range shown {
		if at, deleted := d.by[node][shown[i].UID]; deleted && shown[i].DeletionTimestamp == nil {
			shown[i].DeletionTimestamp = &at
			left[shown[i].UID] = at
		}
	}
	delete(d.by, node)
	if len(left) > 0 {
		d.by[node] = left
	}
}

// Recorded remembers which situations of a node have an event, for as long as they last. The
// zero value is usable.
type Recorded struct {
	mu     sync.Mutex
	events map[string]map[string]bool
}

// Add maps each of a node's situations to true if it is new. It forgets all other situations.
func (r *Recorded) Add(node string, situations []string) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	added, lasting := map[string]bool{}, map[string]bool{}
	for _, situation := range situations {
		added[situation] = !r.events[node][situation]
		lasting[situation] = true
	}
	if r.events == nil {
		r.events = map[string]map[string]bool{}
	}
	if r.events[node] = lasting; len(lasting) == 0 {
		delete(r.events, node)
	}
	return added
}
