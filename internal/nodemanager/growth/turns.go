package growth

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// growthsOfDriver is how many volumes of one driver grow at once. Each call of a driver that hangs
	// keeps a worker for minutes.
	growthsOfDriver = 4
	// concurrentGrowths is how many volumes of all drivers grow at once: as many as sixteen drivers may.
	concurrentGrowths = 16 * growthsOfDriver
)

// turns bounds how many volumes of each driver grow at once. Its zero value is usable.
type turns struct {
	waking wake.Source
	mu     sync.Mutex
	of     map[string]*turn
}

// turn is what one driver has: growths in progress, and claims that wait for one of them to end.
type turn struct {
	running int
	waiting []types.NamespacedName
}

// begin reports whether the volume of a claim may grow now. If not, the claim is reconciled again
// once another growth of the driver has ended.
func (t *turns) begin(driver string, claim types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, known := t.of[driver]
	if !known {
		at = &turn{}
		if t.of == nil {
			t.of = map[string]*turn{}
		}
		t.of[driver] = at
	}
	if at.running < growthsOfDriver {
		at.running++
		return true
	}
	if !slices.Contains(at.waiting, claim) {
		at.waiting = append(at.waiting, claim)
	}
	return false
}

// end wakes a waiting claim for each growth that may begin: an earlier one may not have used its turn.
func (t *turns) end(driver string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[driver]
	at.running--
	free := min(growthsOfDriver-at.running, len(at.waiting))
	for _, claim := range at.waiting[:free] {
		t.waking.Add(claim)
	}
	at.waiting = at.waiting[free:]
	if at.running == 0 && len(at.waiting) == 0 {
		delete(t.of, driver)
	}
}

// driverOf is whose turn the growth of a volume takes.
func driverOf(volume *corev1.PersistentVolume) string {
	if volume.Spec.CSI == nil {
		return ""
	}
	return volume.Spec.CSI.Driver
}
