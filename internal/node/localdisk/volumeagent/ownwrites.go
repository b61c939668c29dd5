package volumeagent

import (
	"encoding/json"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/wake"
)

// ownWrites are the statuses that the reconciler wrote, until the watch shows them. They wake no volume: the
// reconcile that wrote them has returned when to reconcile again. Its zero value is usable. All methods are safe
// for concurrent use.
type ownWrites struct {
	mu sync.Mutex
	// statuses are in JSON, in the order of their writes, by the names of volumes. Times have the precision of the
	// API server's there.
	statuses map[string][]string
}

// maxNoted is how many statuses of one volume are remembered. A watch that is behind has one or two to show.
const maxNoted = 4

// note records a status that is about to be written: the watch may show it before the write is answered. Of too
// many, the oldest is dropped.
func (w *ownWrites) note(volume *stowagev1alpha1.NodeVolume) {
	status, err := json.Marshal(volume.Status)
	if err != nil {
		return // The write fails, too.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.statuses == nil {
		w.statuses = map[string][]string{}
	}
	noted := w.statuses[volume.Name]
	noted = append(noted, string(status))
	w.statuses[volume.Name] = noted[max(0, len(noted)-maxNoted):]
}

// forget drops the statuses of a volume that is gone.
func (w *ownWrites) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.statuses, name)
}

// take reports whether a change is no more than a status that was noted, and then drops that and those before it:
// a watch shows writes in their order. What others changed before is another change, unless the watch was
// interrupted: then metadata or spec differ, too.
func (w *ownWrites) take(before, now *stowagev1alpha1.NodeVolume) bool {
	status, err := json.Marshal(now.Status)
	w.mu.Lock()
	defer w.mu.Unlock()
	noted := w.statuses[now.Name]
	shown := slices.Index(noted, string(status))
	if shown < 0 || err != nil || !isSameButStatus(before, now) {
		return false
	}
	if noted = noted[shown+1:]; len(noted) > 0 {
		w.statuses[now.Name] = noted
	} else {
		delete(w.statuses, now.Name)
	}
	return true
}

// others passes all changes but the reconciler's own, and orders that ask for nothing yet.
func (w *ownWrites) others() builder.ForOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return w.isOther(e.ObjectOld.(*stowagev1alpha1.NodeVolume), e.ObjectNew.(*stowagev1alpha1.NodeVolume))
	}})
}

func (w *ownWrites) isOther(before, now *stowagev1alpha1.NodeVolume) bool {
	return !w.take(before, now) && !isBareOrder(before, now)
}

// isBareOrder reports whether a change is no more than the order to remove the data once the object is deleted. The deletion follows
// at once, and is the next change: a reconcile in between would write no more than that it has seen the order.
func isBareOrder(before, now *stowagev1alpha1.NodeVolume) bool {
	if before.Spec.RemoveData || !now.Spec.RemoveData || !now.DeletionTimestamp.IsZero() {
		return false
	}
	ordered := before.DeepCopy()
	ordered.Spec.RemoveData, ordered.Generation = true, now.Generation
	return isSameButStatus(ordered, now) && equality.Semantic.DeepEqual(ordered.Status, now.Status)
}

func isSameButStatus(before, now *stowagev1alpha1.NodeVolume) bool {
	return equality.Semantic.DeepEqual(wake.WithoutVersion(before.ObjectMeta), wake.WithoutVersion(now.ObjectMeta)) &&
		equality.Semantic.DeepEqual(before.Spec, now.Spec)
}
