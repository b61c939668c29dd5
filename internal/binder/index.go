package binder

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Index holds the cluster's volumes in the order in which claims take them (per
// class and kind, by capacity, then age, then name) and the claims that wait for
// one. An informer feeds it with Put and Remove; workers take volumes with Take.
// Volumes that it returns are shared: they are not to be changed. All methods can
// be called at once.
type Index struct {
	mu sync.Mutex
	// volumes are all that there are, by name.
	volumes map[string]*stocked
	// classes hold the same volumes in order.
	classes map[string]*shelves
	// named are those whose claimRef names a claim.
	named map[types.NamespacedName][]*stocked
	// taken are the volumes that a worker is binding: what the API server may
	// know already and the informer doesn't. A taking ends with GiveBack, or as
	// soon as the informer shows another version of the volume: the write was
	// seen then, or it will meet a conflict, and the volume is kept for the claim
	// to try again.
	taken map[string]taking
	// takers are the volumes that are taken, by claim: a claim takes one.
	takers map[types.UID]string
	// asked are the claims that name a volume, bound to it or not.
	asked map[string][]*corev1.PersistentVolumeClaim
	// waiting are the claims that got no volume.
	waiting waitingRoom
	// woken are those of them that got one since, to be told once the index is
	// unlocked.
	woken []types.NamespacedName
	wake  func(claim types.NamespacedName)
}

// NewIndex makes an empty index. It calls wake with a claim that waited as soon as
// it keeps a volume for it: the claim is to Take it, or to Leave.
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

// Put adds a volume or replaces what was known of it. Where it is free it is kept
// for the largest waiting claim that it fits.
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

// reshelve moves a volume that was promised, or is no more: who looks for a volume
// doesn't go past all that are promised to others.
func (x *Index) reshelve(name string) {
	v := x.volumes[name]
	if v == nil || v.promised == x.isPromised(name) {
		return
	}
	x.classes[v.class].remove(v)
	v.promised = !v.promised
	x.classes[v.class].put(v)
}

// unlock lets others in and then wakes whom the index found a volume for.
func (x *Index) unlock() {
	woken := x.woken
	x.woken = nil
	x.mu.Unlock()
	for _, claim := range woken {
		x.wake(claim)
	}
}
