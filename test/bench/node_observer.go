package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// podObserver sees what users see: when pods come, have their volumes, are deleted, and
// are gone.
type podObserver struct {
	watching watch.Interface

	mu sync.Mutex
	// came and left are when each pod was seen first, and seen to be deleted.
	came, left map[string]time.Time
	// had and went are how long after that it had its volumes, and was gone.
	had, went   map[string]time.Duration
	first, last time.Time
	err         error
	news        chan struct{}
}

// observePods watches from now on.
func (b *testbed) observePods() (*podObserver, error) {
	watching, err := b.watchFromNow(&corev1.PodList{})
	if err != nil {
		return nil, err
	}
	o := &podObserver{
		watching: watching, came: map[string]time.Time{}, left: map[string]time.Time{},
		had: map[string]time.Duration{}, went: map[string]time.Duration{}, news: make(chan struct{}, 1),
	}
	go o.follow()
	return o, nil
}

func (o *podObserver) stop() { o.watching.Stop() }

func (o *podObserver) follow() {
	for event := range o.watching.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			o.see(event.Type, pod, time.Now())
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.New("the watch ended: events were missed")
}

func (o *podObserver) see(event watch.EventType, pod *corev1.Pod, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.first.IsZero() {
		o.first = now
	}
	if _, known := o.came[pod.Name]; !known {
		o.came[pod.Name] = now
	}
	if _, known := o.left[pod.Name]; !known && pod.DeletionTimestamp != nil {
		o.left[pod.Name] = now
	}
	if _, known := o.had[pod.Name]; !known && hasVolumes(pod) && pod.DeletionTimestamp == nil {
		o.had[pod.Name], o.last = now.Sub(o.came[pod.Name]), now
	}
	if event == watch.Deleted {
		o.went[pod.Name], o.last = now.Sub(o.left[pod.Name]), now
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

func hasVolumes(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == stowagev1alpha1.VolumesReadyCondition && condition.Status == corev1.ConditionTrue
	})
}

func (o *podObserver) mounted() map[string]time.Duration { return o.had }

func (o *podObserver) gone() map[string]time.Duration { return o.went }

// await waits until something came to its end for n pods, and tells how long each took.
func (o *podObserver) await(ctx context.Context, n int, p *process, done func(*podObserver) map[string]time.Duration) ([]time.Duration, error) {
	for {
		times, err := o.so(done)
		if err == nil {
			err = errors.Join(ctx.Err(), p.alive())
		}
		if err != nil || len(times) >= n {
			return times, err
		}
		select {
		case <-o.news:
		case <-p.ended:
		case <-ctx.Done():
		case <-time.After(stalled):
			return nil, fmt.Errorf("of %d pods %d are as they should be, and for %s nothing happened", n, len(times), stalled)
		}
	}
}

func (o *podObserver) so(done func(*podObserver) map[string]time.Duration) ([]time.Duration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(done(o))), o.err
}

// took is from the first that was seen to the last that came to its end.
func (o *podObserver) took() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last.Sub(o.first)
}
