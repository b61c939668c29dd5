package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

type bound struct {
	// touched is when a claim was first written to, and tied when the first volume was
	// tied to a claim.
	touched, tied time.Time
	at            map[string]time.Time
	// lastOf is when the last claim of each class was bound.
	lastOf map[string]time.Time
}

func newBound() *bound { return &bound{at: map[string]time.Time{}, lastOf: map[string]time.Time{}} }

func (w *bound) views() []view {
	return []view{{&corev1.PersistentVolumeClaimList{}, w.seeClaim}, {&corev1.PersistentVolumeList{}, w.seeVolume}}
}

func (w *bound) all(n int) func() bool { return func() bool { return len(w.at) >= n } }

func (w *bound) seeClaim(event watch.Event, now time.Time) change {
	claim, ok := event.Object.(*corev1.PersistentVolumeClaim)
	if ok && event.Type == watch.Modified && w.touched.IsZero() {
		w.touched = now
	}
	if !ok || event.Type == watch.Deleted || claim.Status.Phase != corev1.ClaimBound || !strings.HasPrefix(*claim.Spec.StorageClassName, class) {
		return nothing
	}
	if _, seen := w.at[claim.Name]; seen {
		return nothing
	}
	w.at[claim.Name] = now
	w.lastOf[*claim.Spec.StorageClassName] = now
	return progress
}

// seeVolume looks for the first binding only, and spares the machine the rest.
func (w *bound) seeVolume(event watch.Event, now time.Time) change {
	pv, ok := event.Object.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
		return nothing
	}
	w.tied = now
	return enough
}

// seenSince sets how long it took, from a start, until claims were bound. Where the start
// of a claim is known, its own time begins there.
func (w *bound) seenSince(r *result, started time.Time, starts map[string]time.Time) {
	r.took(len(w.at), w.last().Sub(started))
	r.Latency = latencyOf(w.times(started, starts))
}

func (w *bound) last() time.Time {
	if len(w.at) == 0 {
		return time.Time{}
	}
	return slices.MaxFunc(slices.Collect(maps.Values(w.at)), time.Time.Compare)
}

// spread is how many times as long the slowest class took as the fastest, since a start; 0 for
// one class.
func (w *bound) spread(started time.Time) float64 {
	if len(w.lastOf) < 2 {
		return 0
	}
	ends := slices.SortedFunc(maps.Values(w.lastOf), time.Time.Compare)
	return float64(ends[len(ends)-1].Sub(started)) / float64(ends[0].Sub(started))
}

func (w *bound) times(started time.Time, starts map[string]time.Time) []time.Duration {
	times := make([]time.Duration, 0, len(w.at))
	for claim, when := range w.at {
		since, known := starts[claim]
		if !known {
			since = started
		}
		times = append(times, max(0, when.Sub(since)))
	}
	return times
}
