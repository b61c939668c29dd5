package binder

import (
	"maps"
	"unsafe"
)

// VolumeBytes is what a volume takes in the index.
const VolumeBytes = unsafe.Sizeof(indexedVolume{})

// Counts returns what Explain reports: the number of volumes of the claim's class by the cause
// why it cannot have them, without those that are reserved for it.
func (x *Index) Counts(request ClaimRequest) map[Cause]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := candidateOf(request)
	counts := x.tally(&s).counts
	maps.DeleteFunc(counts, func(_ Cause, count int) bool { return count == 0 })
	return counts
}
