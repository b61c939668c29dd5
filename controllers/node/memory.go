package node

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// reservations keep two nodes from being given one volume at the same time by this
// process: who reserved it has it until its attachment is in the cache, where everybody
// sees it. Its zero value is usable.
type reservations struct {
	mu sync.Mutex
	by map[corev1.UniqueVolumeName]string
}

// take reserves a volume for a node, unless another one has it.
func (r *reservations) take(volume corev1.UniqueVolumeName, node string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, taken := r.by[volume]; taken {
		return other == node
	}
	if r.by == nil {
		r.by = map[corev1.UniqueVolumeName]string{}
	}
	r.by[volume] = node
	return true
}

// holder is the node that a volume is reserved for.
func (r *reservations) holder(volume corev1.UniqueVolumeName) (node string, taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	node, taken = r.by[volume]
	return node, taken
}

// drop gives back what a node reserved and didn't get.
func (r *reservations) drop(volume corev1.UniqueVolumeName, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[volume] == node {
		delete(r.by, volume)
	}
}

// settle drops all of a node's but those that it still awaits.
func (r *reservations) settle(node string, awaits func(corev1.UniqueVolumeName) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for volume, by := range r.by {
		if by == node && !awaits(volume) {
			delete(r.by, volume)
		}
	}
}

// madeAttachments are those that this process made and nobody has deleted yet, as far
// as it knows. Its zero value is usable.
type madeAttachments struct{ uids sync.Map }

func (m *madeAttachments) add(uid types.UID) { m.uids.Store(uid, nil) }

func (m *madeAttachments) remove(uid types.UID) { m.uids.Delete(uid) }

func (m *madeAttachments) has(uid types.UID) bool {
	_, has := m.uids.Load(uid)
	return has
}

// toldOnce remembers which situations of a node were told, for as long as they last. Its
// zero value is usable.
type toldOnce struct {
	mu   sync.Mutex
	told map[string]map[string]bool
}

// news returns those of a node's situations that weren't told yet; the others are over.
func (t *toldOnce) news(node string, situations []string) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	news, lasting := map[string]bool{}, map[string]bool{}
	for _, situation := range situations {
		news[situation] = !t.told[node][situation]
		lasting[situation] = true
	}
	if t.told == nil {
		t.told = map[string]map[string]bool{}
	}
	if t.told[node] = lasting; len(lasting) == 0 {
		delete(t.told, node)
	}
	return news
}
