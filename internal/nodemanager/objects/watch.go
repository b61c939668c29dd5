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

// minWatchTime is how long the API server is asked to let a watch run at least. It is
// more than client-go's five minutes: a node has one for each object.
const minWatchTime = 30 * time.Minute

// watch has the object watched until nobody shows it any more. The watch begins again
// whenever it ends, and learns then what it missed.
func (o *object) watch(ctx context.Context) {
	if o.stop != nil || o.reader.ended {
		return
	}
	// It outlives the pass over a pod that it was begun in.
	ctx = logf.IntoContext(context.WithoutCancel(ctx), logf.Log.WithName("objects").WithValues("object", o.String()))
	ctx, o.stop = context.WithCancel(ctx)
	reflector := cache.NewReflectorWithOptions(o.listerWatcher(), o.kind.newObject(), store{o}, cache.ReflectorOptions{
		Name: o.String(), MinWatchTimeout: minWatchTime,
	})
	o.reader.watches.Go(func() { reflector.RunWithContext(ctx) })
}

func (o *object) unwatch() {
	if o.stop != nil {
		o.stop()
		o.stop = nil
	}
}

// listerWatcher asks for the one object: a node may list and watch it by its name only.
func (o *object) listerWatcher() cache.ListerWatcher {
	live := o.reader.Live
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: o.namespace, FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, o.name), Raw: &raw}
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			if raw.ResourceVersion == "0" { // any version: it may be older than what was read
				raw.ResourceVersion = ""
			}
			list := o.kind.newList()
			return list, live.List(ctx, list, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return live.Watch(ctx, o.kind.newList(), options(raw))
		},
	}, live)
}

// store is where a watch puts what it sees: a cache.ReflectorStore.
type store struct{ *object }

func (s store) note(seen client.Object, version string) error {
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	if s.learn(seen, version) {
		s.tell("")
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (s store) Add(seen any) error {
	object := seen.(client.Object)
	return s.note(object, object.GetResourceVersion())
}

// Update implements cache.ReflectorStore.
func (s store) Update(seen any) error { return s.Add(seen) }

// Delete implements cache.ReflectorStore. The version of what was deleted is that of
// its deletion.
func (s store) Delete(seen any) error {
	return s.note(nil, seen.(client.Object).GetResourceVersion())
}

// Replace implements cache.ReflectorStore.
func (s store) Replace(list []any, version string) error {
	if len(list) == 0 {
		return s.note(nil, version)
	}
	return s.note(list[0].(client.Object), version)
}

// Resync implements cache.ReflectorStore.
func (s store) Resync() error { return nil }
