package objects

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// minWatchTime is the least duration of a watch that the API server is asked for. It is more than
// client-go's five minutes: a node has a watch for each object.
const minWatchTime = 30 * time.Minute

// watchDelay is how long after an object was read its watch begins: not while the pods that read it
// wait for their volumes. The watch begins with the object's state then. What doesn't exist is waited
// for, and watched at once.
const watchDelay = time.Second

// lingers is how long an object is watched after the last pod that projected it. So that pod's volumes are unmounted before the watch
// ends, and a pod that comes right after goes on with it.
const lingers = time.Second / 2

// watch watches the object until no pod projects it any more. A watch that ends begins again, and
// then lists what it missed.
func (o *object) watch(ctx context.Context) {
	if o.stop != nil || o.ended {
		return
	}
	// It outlives the pass over a pod that began it.
	ctx = logf.IntoContext(context.WithoutCancel(ctx), logf.Log.WithName("objects").WithValues("object", o.String()))
	ctx, o.stop = context.WithCancel(ctx)
	reflector := cache.NewReflectorWithOptions(o.listerWatcher(), o.kind.newObject(), store{o}, cache.ReflectorOptions{
		Name: o.String(), MinWatchTimeout: minWatchTime,
	})
	delay := watchDelay
	if o.known == nil {
		delay = 0
	}
	o.watches.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(delay):
			if o.begins(ctx) {
				reflector.RunWithContext(ctx)
			}
		}
	})
}

// begins records that a watch begins, and returns true, unless it has been stopped.
func (o *object) begins(ctx context.Context) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	o.isWatched = true
	return true
}

// listerWatcher lists and watches the one object: a node may do so by its name only.
func (o *object) listerWatcher() cache.ListerWatcher {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: o.namespace, FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, o.name), Raw: &raw}
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			if raw.ResourceVersion == "0" { // any version: it may be older than what was read
				raw.ResourceVersion = ""
			}
			list := o.kind.newList()
			return list, o.live.List(ctx, list, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return o.live.Watch(ctx, o.kind.newList(), options(raw))
		},
	}, o.live)
}

// store is the cache.ReflectorStore of a watch.
type store struct{ *object }

func (s store) record(state client.Object, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.update(state, version) {
		s.notify("")
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (s store) Add(seen any) error {
	object := seen.(client.Object)
	return s.record(object, object.GetResourceVersion())
}

// Update implements cache.ReflectorStore.
func (s store) Update(seen any) error { return s.Add(seen) }

// Delete implements cache.ReflectorStore. A deleted object has the version of its deletion.
func (s store) Delete(seen any) error {
	return s.record(nil, seen.(client.Object).GetResourceVersion())
}

// Replace implements cache.ReflectorStore.
func (s store) Replace(list []any, version string) error {
	if len(list) == 0 {
		return s.record(nil, version)
	}
	return s.record(list[0].(client.Object), version)
}

// Resync implements cache.ReflectorStore.
func (s store) Resync() error { return nil }
