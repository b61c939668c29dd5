package podstatus

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/event"
)

// Problems remembers which problems of pods that can't be torn down were recorded. So each is
// recorded once. It also remembers how often the pods were tried. Its zero value is usable.
type Problems struct {
	recorded event.Once[types.UID]
	mu       sync.Mutex
	// Tries is how often each pod was tried since its last new problem.
	Tries map[types.UID]int
}

// Record takes the errors of one pass. It returns when to try again, ever later for problems
// that stay, and the joined errors that are new.
func (t *Problems) Record(uid types.UID, problems []error) (again time.Duration, fresh error) {
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

// Forget drops a pod of which nothing is left.
func (t *Problems) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.Tries, uid)
	t.recorded.Forget(uid)
}
