package local

import (
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Requests is what NodeVolumes ask of nodes.
type Requests struct{ *requests }

// NewRequests has none.
func NewRequests() Requests { return Requests{newRequests()} }

// Set shows a NodeVolume as it is now.
func (r Requests) Set(volume *stowagev1alpha1.NodeVolume) { r.set(volume) }

// Remove shows that one is gone.
func (r Requests) Remove(volume client.Object) { r.remove(volume) }

// Missed shows that one is gone, by a list.
func (r Requests) Missed(volume client.Object) {
	r.remove(toolscache.DeletedFinalStateUnknown{Key: volume.GetName(), Obj: volume})
}

// At is what is asked of a node, but for one volume: all of it, and what isn't made.
func (r Requests) At(backend, node, except string) []int64 {
	sum := r.at(backend, node, except)
	return []int64{sum.all, sum.unmade}
}

// IsEmpty reports whether nothing is remembered.
func (r Requests) IsEmpty() bool { return len(r.volumes) == 0 && len(r.sums) == 0 }

// IsCurrent reports whether a watch has shown all NodeVolumes.
func (k Kind) IsCurrent() bool { return k.requests.isCurrent() }

// AsksFor reports whether a watch has shown volumes with these names, and no others.
func (k Kind) AsksFor(names ...string) bool {
	k.requests.mu.Lock()
	defer k.requests.mu.Unlock()
	for name := range k.requests.volumes {
		if !slices.Contains(names, name) {
			return false
		}
	}
	return len(k.requests.volumes) == len(names)
}
