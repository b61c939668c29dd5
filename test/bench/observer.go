package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stalled is for how long nothing is bound before it is taken that nothing more
// will be.
const stalled = 30 * time.Second

// observer sees what users see: when claims become Bound. Everybody is measured
// by the same one.
type observer struct {
	watches []watch.Interface

	mu sync.Mutex
	// touched is when a claim was first written to, and first when the first volume was
	// tied to a claim.
	touched, first time.Time
	bound          map[string]time.Time
	err            error
	// news holds a token if something happened since it was last taken.
	news chan struct{}
}

// observe watches from now on.
func (b *testbed) observe() (*observer, error) {
	o := &observer{bound: map[string]time.Time{}, news: make(chan struct{}, 1)}
	claims, err := b.watchFromNow(&corev1.PersistentVolumeClaimList{})
	if err != nil {
		return nil, err
	}
	volumes, err := b.watchFromNow(&corev1.PersistentVolumeList{})
	if err != nil {
		claims.Stop()
		return nil, err
	}
	o.watches = []watch.Interface{claims, volumes}
	go o.follow(claims, o.seeClaim)
	go o.follow(volumes, o.seeVolume)
	return o, nil
}

func (o *observer) stop() {
	for _, watching := range o.watches {
		watching.Stop()
	}
}

func (b *testbed) watchFromNow(list client.ObjectList) (watch.Interface, error) {
	if err := b.client.List(b.ctx, list, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("listing %T: %w", list, err)
	}
	return watchSince(b.ctx, b.client, list)
}

// watchSince watches what has happened since something was listed.
func watchSince(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	// The API server ends the watch of a client that is too slow for it.
	again := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
		return from.Watch(ctx, list, append(options, &client.ListOptions{Raw: &raw})...)
	}}
	watching, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), again)
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", list, err)
	}
	return watching, nil
}

// follow hands events to see until it says that it saw enough.
func (o *observer) follow(watching watch.Interface, see func(watch.Event) (done bool)) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if see(event) {
			return
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.New("the watch ended: events were missed")
}

func (o *observer) seeClaim(event watch.Event) bool {
	claim, ok := event.Object.(*corev1.PersistentVolumeClaim)
	if ok && event.Type == watch.Modified {
		o.touch()
	}
	if !ok || event.Type == watch.Deleted || claim.Status.Phase != corev1.ClaimBound || *claim.Spec.StorageClassName != class {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, seen := o.bound[claim.Name]; !seen {
		o.bound[claim.Name] = time.Now()
		select {
		case o.news <- struct{}{}:
		default:
		}
	}
	return false
}

func (o *observer) touch() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.touched.IsZero() {
		o.touched = time.Now()
	}
}

// begun is when a claim was first written to.
func (o *observer) begun() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.touched
}

// seeVolume looks for the first binding only, and spares the machine the rest.
func (o *observer) seeVolume(event watch.Event) bool {
	pv, ok := event.Object.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.first = time.Now()
	return true
}

// awaitBound waits until n claims are bound, or until nothing more happens: then
// fewer are. It tells when the first volume was tied, and when which claim was
// bound.
func (o *observer) awaitBound(ctx context.Context, n int, p *process) (first time.Time, bound map[string]time.Time, err error) {
	defer o.stop()
	for {
		count, err := o.count()
		if err == nil {
			err = errors.Join(ctx.Err(), p.alive())
		}
		if err != nil || count >= n {
			first, bound = o.seen()
			return first, bound, err
		}
		select {
		case <-o.news:
		case <-p.ended:
		case <-ctx.Done():
		case <-time.After(stalled):
			first, bound = o.seen()
			return first, bound, nil
		}
	}
}

func (o *observer) count() (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.bound), o.err
}

func (o *observer) seen() (first time.Time, bound map[string]time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first, maps.Clone(o.bound)
}
