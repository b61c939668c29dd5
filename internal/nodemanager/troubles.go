package nodemanager

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Troubles remembers what was told of pods that can't be taken down, so that it is
// told once, and how often they were tried. Its zero value is usable.
type Troubles struct {
	mu   sync.Mutex
	pods map[types.UID]*trouble
}

// trouble is one pod's.
type trouble struct {
	told  map[string]struct{}
	tries int
}

// Note takes the errors of one pass and returns when to try again, as a problem that
// stays is looked at less and less often, and those that were not told before,
// joined.
func (t *Troubles) Note(uid types.UID, problems []error) (again time.Duration, news error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pods == nil {
		t.pods = map[types.UID]*trouble{}
	}
	of, known := t.pods[uid]
	if !known {
		of = &trouble{told: map[string]struct{}{}}
		t.pods[uid] = of
	}
	var fresh []error
	for _, problem := range problems {
		if _, told := of.told[problem.Error()]; !told {
			of.told[problem.Error()] = struct{}{}
			fresh = append(fresh, problem)
		}
	}
	of.tries++
	if len(fresh) > 0 {
		of.tries = 1
	}
	return claimWait(of.tries), errors.Join(fresh...)
}

// Forget notes that nothing is left of a pod.
func (t *Troubles) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pods, uid)
}
