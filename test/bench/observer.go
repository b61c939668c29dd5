package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stalled is for how long nothing new happens before nothing more is expected.
const stalled = 30 * time.Second

var errStalled = fmt.Errorf("nothing happened for %s", stalled)

// observer sees what users see, by watches of its own: all programs are measured by the
// same one. What it saw is kept by the functions of its views.
type observer struct {
	watches []watch.Interface

	// mu is held while views see an event, and while await asks whether all is done.
	mu  sync.Mutex
	err error
	// progress holds a token if something happened since it was last taken.
	progress chan struct{}
}

type change int

const (
	nothing change = iota
	progress
	enough
)

type view struct {
	list client.ObjectList
	see  func(event watch.Event, now time.Time) change
}

func (b *testbed) observe(views ...view) (*observer, error) {
	o := &observer{progress: make(chan struct{}, 1)}
	for _, v := range views {
		watching, err := b.watchFromNow(v.list)
		if err != nil {
			o.stop()
			return nil, fmt.Errorf("watching %T: %w", v.list, err)
		}
		o.watches = append(o.watches, watching)
	}
	for i, v := range views {
		go o.follow(o.watches[i], v.see)
	}
	return o, nil
}

func (b *testbed) watchFromNow(list client.ObjectList) (watch.Interface, error) {
	if err := b.client.List(b.ctx, list, client.Limit(1)); err != nil {
		return nil, err
	}
	// The API server ends the watch of a client that is too slow for it.
	again := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
		return b.client.Watch(ctx, list, &client.ListOptions{Raw: &raw})
	}}
	return toolswatch.NewRetryWatcherWithContext(b.ctx, list.GetResourceVersion(), again)
}

func (o *observer) stop() {
	for _, watching := range o.watches {
		watching.Stop()
	}
}

func (o *observer) follow(watching watch.Interface, see func(watch.Event, time.Time) change) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if o.record(see, event) == enough {
			return
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.New("the watch ended: events were missed")
}

func (o *observer) record(see func(watch.Event, time.Time) change, event watch.Event) change {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := see(event, now)
	if seen != nothing {
		select {
		case o.progress <- struct{}{}:
		default:
		}
	}
	return seen
}

// await waits until all is done. It returns errStalled if nothing new happens before.
func (o *observer) await(ctx context.Context, running processes, done func() bool) error {
	for last := time.Now(); ; {
		isDone, err := o.ask(done)
		if err == nil {
			err = errors.Join(ctx.Err(), running.alive())
		}
		if err != nil || isDone {
			return err
		}
		select {
		case <-o.progress:
			last = time.Now()
		case <-ctx.Done():
		case <-time.After(time.Second):
			if time.Since(last) > stalled {
				return errStalled
			}
		}
	}
}

func (o *observer) ask(done func() bool) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return done(), o.err
}

func (o *observer) read(seen func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen()
}
