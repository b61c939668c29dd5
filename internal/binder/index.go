package binder

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Index holds the cluster's volumes in the order in which claims take them: per class and
// kind, by capacity, then age, then name. It also holds the pending claims. An informer feeds
// it with Put and Remove; workers reserve volumes with Take. Returned volumes are shared and
// must not be changed. All methods can be called concurrently.
type Index struct {
	mu sync.Mutex
	// volumes are all volumes, by name.
	volumes map[string]*stocked
	// classes hold the same volumes in order.
	classes map[string]*shelves
	// named are the volumes by the claim that their claimRef names.
	named map[types.NamespacedName][]*stocked
	// taken are the volumes that a worker is binding: the API server may have the write
	// already, and the informer not yet. A reservation ends with GiveBack, or when the
	// informer shows another version of the volume. Then either the write was seen, or it will
	// meet a conflict. The volume is kept for the claim to retry.
	taken map[string]taking
	// takers are the reserved volumes, by claim: a claim reserves one.
	takers map[types.UID]string
	// asked are the claims that name a volume, bound to it or not.
	asked map[string][]*corev1.PersistentVolumeClaim
	// waiting are the pending claims.
	waiting waitingRoom
	// woken are the claims that got a volume since. They are woken after the unlock.
	woken []types.NamespacedName
	wake  func(claim types.NamespacedName)
}

// NewIndex returns an empty index. It calls wake for a pending claim as soon as it reserves a
// volume for it, tentatively: the claim must then call Take or Leave.
func NewIndex(wake func(claim types.NamespacedName)) *Index {
	return &Index{
		volumes: map[string]*stocked{},
		classes: map[string]*shelves{},
		named:   map[types.NamespacedName][]*stocked{},
		taken:   map[string]taking{},
		takers:  map[types.UID]string{},
		asked:   map[string][]*corev1.PersistentVolumeClaim{},
		waiting: newWaitingRoom(),
		wake:    wake,
	}
}

// Put adds or replaces a volume. A free volume is kept for the largest pending claim that it
// fits.
func (x *Index) Put(pv *corev1.PersistentVolume) {
	x.mu.Lock()
	defer x.unlock()
	x.remove(pv.Name)
	v := stock(pv)
	v.promised = x.isPromised(v.name)
	x.add(v)
	if by, taken := x.taken[pv.Name]; taken && by.version != pv.ResourceVersion {
		x.release(pv.Name)
		x.keep(v, by.seeker)
	}
	x.revise(v)
}

// Remove forgets a volume.
func (x *Index) Remove(name string) {
	x.mu.Lock()
	defer x.unlock()
	x.remove(name)
	x.release(name)
	if w := x.withdraw(name); w != nil {
		x.settle(w)
	}
}

func (x *Index) add(v *stocked) {
	x.volumes[v.name] = v
	if x.classes[v.class] == nil {
		x.classes[v.class] = newShelves()
	}
	x.classes[v.class].put(v)
	if ref := v.pv.Spec.ClaimRef; ref != nil {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		x.named[key] = append(x.named[key], v)
	}
}

func (x *Index) remove(name string) {
	v, exists := x.volumes[name]
	if !exists {
		return
	}
	delete(x.volumes, name)
	x.classes[v.class].remove(v)
	if x.classes[v.class].empty() {
		delete(x.classes, v.class)
	}
	if ref := v.pv.Spec.ClaimRef; ref != nil {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		x.named[key] = slices.DeleteFunc(x.named[key], func(other *stocked) bool { return other == v })
		if len(x.named[key]) == 0 {
			delete(x.named, key)
		}
	}
}

func (x *Index) isPromised(name string) bool {
	_, taken := x.taken[name]
	return taken || x.waiting.offers[name] != nil
}

// reshelve reindexes a volume after its reservation began or ended. A search skips reserved
// volumes that way.
func (x *Index) reshelve(name string) {
	v := x.volumes[name]
	if v == nil || v.promised == x.isPromised(name) {
		return
	}
	x.classes[v.class].remove(v)
	v.promised = !v.promised
	x.classes[v.class].put(v)
}

// unlock releases the lock, and then wakes the claims that got a volume: the callback runs
// without the lock.
func (x *Index) unlock() {
	woken := x.woken
	x.woken = nil
	x.mu.Unlock()
	for _, claim := range woken {
		x.wake(claim)
	}
}
