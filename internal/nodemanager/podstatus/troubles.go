package podstatus

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/event"
)

// Problems remembers which problems of pods that can't be taken down were recorded, so that
// each is recorded once, and how often the pods were tried. Its zero value is usable.
type Problems struct {
	recorded event.Once[types.UID]
	mu       sync.Mutex
	// Tries is how often each pod was tried since its last new problem.
	Tries map[types.UID]int
}

// Note takes the errors of one pass and returns when to try again, as a problem that
// stays is looked at less and less often, and those that were not recorded before,
// joined.
func (t *Problems) Note(uid types.UID, problems []error) (again time.Duration, fresh error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Tries == nil {
		t.Tries = map[types.UID]int{}
	}
	var unrecorded []error
	for _, problem := range problems {
		if t.recorded.IsNew(uid, problem.Error()) {
			unrecorded = append(unrecorded, problem)
		}
	}
	t.Tries[uid]++
	if len(unrecorded) > 0 {
		t.Tries[uid] = 1
	}
	return ClaimWait(t.Tries[uid]), errors.Join(unrecorded...)
}

// Forget notes that nothing is left of a pod.
func (t *Problems) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.Tries, uid)
	t.recorded.Forget(uid)
}
