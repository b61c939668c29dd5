// Package requests sums up what NodeVolumes ask of the disks of nodes.
package requests

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

// Requests are what the NodeVolumes of each backend ask of each node, as a cache's watch shows them. To add them up for each new
// volume would take the longer, the more volumes there are. Its methods may be called concurrently, but for Follow.
type Requests struct {
	mu      sync.Mutex
	volumes map[string]request
	sums    map[place]Requested
	// watched is nil until a cache was given.
	watched toolscache.ResourceEventHandlerRegistration
}

// place is where the volumes of a backend lie on one node.
type place struct{ backend, node string }

// request is what one volume asks for.
type request struct {
	place
	Requested
}

// Requested is what volumes ask for, in bytes: all of it, and what isn't made yet.
type Requested struct{ All, Unmade int64 }

// New returns the requests of no volumes.
func New() *Requests {
	return &Requests{volumes: map[string]request{}, sums: map[place]Requested{}}
}

// Follow has a cache's watch show the NodeVolumes. It must be called before all other methods, or not at all.
func (r *Requests) Follow(ctx context.Context, cached ctrlcache.Informers) error {
	informer, err := cached.GetInformer(ctx, &stowagev1alpha1.NodeVolume{})
	if err != nil {
		return wrap.Error(err, "following NodeVolumes")
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(added any) { r.Set(added.(*stowagev1alpha1.NodeVolume)) },
		UpdateFunc: func(_, now any) { r.Set(now.(*stowagev1alpha1.NodeVolume)) },
		DeleteFunc: r.remove,
	}
	r.watched, err = informer.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
	return wrap.Error(err, "following NodeVolumes")
}

// IsCurrent reports whether a watch has shown all NodeVolumes.
func (r *Requests) IsCurrent() bool { return r.watched != nil && r.watched.HasSynced() }

// Set notes what a NodeVolume asks for now.
func (r *Requests) Set(volume *stowagev1alpha1.NodeVolume) {
	asks := request{place: place{volume.Labels[stowagev1alpha1.BackendLabel], volume.Spec.NodeName}}
	asks.All = volume.Spec.Capacity.Value()
	if !meta.IsStatusConditionTrue(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition) {
		asks.Unmade = asks.All
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(volume.Name)
	r.volumes[volume.Name] = asks
	r.sums[asks.place] = r.sums[asks.place].plus(asks.Requested)
}

// remove forgets a NodeVolume, also one whose deletion a watch missed.
func (r *Requests) remove(object any) {
	if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = missed.Obj
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(object.(client.Object).GetName())
}

func (r *Requests) drop(name string) {
	asks, known := r.volumes[name]
	if !known {
		return
	}
	delete(r.volumes, name)
	if r.sums[asks.place] = r.sums[asks.place].minus(asks.Requested); r.sums[asks.place] == (Requested{}) {
		delete(r.sums, asks.place)
	}
}

// At is what the volumes of a backend ask of a node, but for one.
func (r *Requests) At(backend, node, except string) Requested {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{backend, node}
	sum := r.sums[at]
	if asks, known := r.volumes[except]; known && asks.place == at {
		sum = sum.minus(asks.Requested)
	}
	return sum
}

func (r Requested) plus(other Requested) Requested {
	return Requested{All: r.All + other.All, Unmade: r.Unmade + other.Unmade}
}

func (r Requested) minus(other Requested) Requested {
	return Requested{All: r.All - other.All, Unmade: r.Unmade - other.Unmade}
}
