package local

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// requests are what the NodeVolumes of each backend ask of each node, as a cache's watch shows them. To add them up for each new
// volume would take the longer, the more volumes there are. Its methods may be called concurrently.
type requests struct {
	mu      sync.Mutex
	volumes map[string]request
	sums    map[place]requested
	// watched is nil until a cache was given.
	watched toolscache.ResourceEventHandlerRegistration
}

// place is where the volumes of a backend lie on one node.
type place struct{ backend, node string }

// request is what one volume asks for.
type request struct {
	place
	requested
}

// requested is what volumes ask for, in bytes: all of it, and what isn't made yet.
type requested struct{ all, unmade int64 }

func newRequests() *requests {
	return &requests{volumes: map[string]request{}, sums: map[place]requested{}}
}

// follow has a cache's watch show the NodeVolumes.
func (r *requests) follow(ctx context.Context, cached ctrlcache.Informers) error {
	informer, err := cached.GetInformer(ctx, &stowagev1alpha1.NodeVolume{})
	if err != nil {
		return wrap.Error(err, "following NodeVolumes")
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    r.set,
		UpdateFunc: func(_, now any) { r.set(now) },
		DeleteFunc: r.remove,
	}
	r.watched, err = informer.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
	return wrap.Error(err, "following NodeVolumes")
}

// isCurrent reports whether a watch has shown all NodeVolumes.
func (r *requests) isCurrent() bool { return r.watched != nil && r.watched.HasSynced() }

// set notes what a NodeVolume asks for now.
func (r *requests) set(object any) {
	volume := object.(*stowagev1alpha1.NodeVolume)
	asks := request{place: place{volume.Labels[stowagev1alpha1.BackendLabel], volume.Spec.NodeName}}
	asks.all = volume.Spec.Capacity.Value()
	if !meta.IsStatusConditionTrue(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition) {
		asks.unmade = asks.all
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(volume.Name)
	r.volumes[volume.Name] = asks
	r.sums[asks.place] = r.sums[asks.place].plus(asks.requested)
}

// remove forgets a NodeVolume, also one whose deletion a watch missed.
func (r *requests) remove(object any) {
	if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(object.(client.Object).GetName())
}

func (r *requests) drop(name string) {
	asks, known := r.volumes[name]
	if !known {
		return
	}
	delete(r.volumes, name)
	if r.sums[asks.place] = r.sums[asks.place].minus(asks.requested); r.sums[asks.place] == (requested{}) {
		delete(r.sums, asks.place)
	}
}

// at is what the volumes of a backend ask of a node, but for one.
func (r *requests) at(backend, node, except string) requested {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{backend, node}
	sum := r.sums[at]
	if asks, known := r.volumes[except]; known && asks.place == at {
		sum = sum.minus(asks.requested)
	}
	return sum
}

func (r requested) plus(other requested) requested {
	return requested{all: r.all + other.all, unmade: r.unmade + other.unmade}
}

func (r requested) minus(other requested) requested {
	return requested{all: r.all - other.all, unmade: r.unmade - other.unmade}
}
