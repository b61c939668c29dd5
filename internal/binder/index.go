package binder

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
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
	// seen then, or it will meet a conflict.
	taken map[string]taking
	// asked are the claims that name a volume, bound to it or not.
	asked map[string][]*corev1.PersistentVolumeClaim
	// waiting are the claims that got no volume.
	waiting waitingRoom
	// woken are those of them that got one since, to be told once the index is
	// unlocked.
	woken []types.NamespacedName
	wake  func(claim types.NamespacedName)
}

// taking is a claim that a worker binds to a version of a volume.
type taking struct {
	claim   types.NamespacedName
	uid     types.UID
	version string
}

// NewIndex makes an empty index. It calls wake with a claim that waited as soon as
// it keeps a volume for it: the claim is to Take it, or to Leave.
func NewIndex(wake func(claim types.NamespacedName)) *Index {
	return &Index{
		volumes: map[string]*stocked{},
		classes: map[string]*shelves{},
		named:   map[types.NamespacedName][]*stocked{},
		taken:   map[string]taking{},
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
	x.add(v)
	if x.taken[pv.Name].version != pv.ResourceVersion {
		delete(x.taken, pv.Name)
	}
	x.revise(v)
}

// Remove forgets a volume.
func (x *Index) Remove(name string) {
	x.mu.Lock()
	defer x.unlock()
	x.remove(name)
	delete(x.taken, name)
	if w := x.waiting.withdraw(name); w != nil {
		x.settle(w)
	}
}

// Take finds the volume for a wish and keeps every other claim from taking it,
// until the index sees the volume tied to a claim or GiveBack is called. Where no
// volume fits it returns nil, and the claim waits for one, until it asks again or
// leaves.
//
// A volume tied or reserved to the claim by its claimRef comes first, then the
// smallest of those that fit; among equals the oldest, then the first by name.
func (x *Index) Take(wish Wish) *corev1.PersistentVolume {
	x.mu.Lock()
	defer x.unlock()
	s := seekerOf(wish)
	offered := x.volumes[x.waiting.leave(s.claim)]
	found := x.findNamed(&s)
	if found == nil && !wish.Delayed {
		found = x.findFree(&s)
	}
	switch {
	case found != nil:
		x.take(found, &s)
	case !wish.Delayed:
		x.waiting.join(&waiter{seeker: s})
	}
	if offered != nil && offered != found {
		x.offer(offered)
	}
	if found == nil {
		return nil
	}
	return found.pv
}

// TakeNamed takes the volume of this name for the claim that asks for it by
// spec.volumeName. It tells why not where the volume is another's; nil and Fits
// mean that there is no such volume.
func (x *Index) TakeNamed(wish Wish) (*corev1.PersistentVolume, Cause) {
	x.mu.Lock()
	defer x.unlock()
	s := seekerOf(wish)
	x.leave(s.claim)
	v, exists := x.volumes[wish.Claim.Spec.VolumeName]
	switch {
	case !exists:
		return nil, Fits
	case TiedTo(v.pv, wish.Claim):
		return v.pv, Fits
	case !x.available(v, s.uid):
		return nil, Taken
	}
	if cause := s.fit(v); !suitsByName(cause) {
		return nil, cause
	}
	x.take(v, &s)
	return v.pv, Fits
}

// GiveBack ends what Take began where the volume wasn't tied to the claim after
// all.
func (x *Index) GiveBack(name string, claim types.UID) {
	x.mu.Lock()
	defer x.unlock()
	if x.taken[name].uid != claim {
		return
	}
	delete(x.taken, name)
	if v := x.volumes[name]; v != nil {
		x.offer(v)
	}
}

// take notes that a worker binds a volume. Whoever it was kept for looks further.
func (x *Index) take(v *stocked, s *seeker) {
	if s.tiedTo(v.pv) {
		return
	}
	x.taken[v.name] = taking{claim: s.claim, uid: s.uid, version: v.pv.ResourceVersion}
	if w := x.waiting.withdraw(v.name); w != nil {
		x.settle(w)
	}
}

// findNamed finds the volume whose claimRef names the claim: one that is tied to
// it already, whatever became of either since, or the smallest that fits.
func (x *Index) findNamed(s *seeker) *stocked {
	var tied, reserved *stocked
	for _, v := range x.named[s.claim] {
		switch {
		case s.tiedTo(v.pv) && v.pv.Annotations[volume.AnnBoundByController] != "" && v.pv.DeletionTimestamp.IsZero():
			tied = first(tied, v)
		case x.available(v, s.uid) && s.fit(v) == Fits:
			reserved = first(reserved, v)
		}
	}
	if tied != nil {
		return tied
	}
	return reserved
}

// findFree finds the smallest volume that nobody has or could claim before.
func (x *Index) findFree(s *seeker) *stocked {
	class := x.classes[s.class]
	if class == nil {
		return nil
	}
	var best *stocked
	class.search(s, func(v *stocked) bool {
		if !x.free(v, s) {
			return false
		}
		best = first(best, v)
		return true
	})
	return best
}

// free tells of a volume without a claimRef whether a claim may have it: nobody
// binds it, it is kept for nobody else, and nobody asks for it by name.
func (x *Index) free(v *stocked, s *seeker) bool {
	w := x.waiting.offers[v.name]
	return x.available(v, s.uid) && (w == nil || w.claim == s.claim) && x.askedBy(v, s.uid) == nil
}

func (x *Index) available(v *stocked, claim types.UID) bool {
	by, taken := x.taken[v.name]
	return !taken || by.uid == claim
}

// first is the one of two volumes that claims take first; a may be nil.
func first(a, b *stocked) *stocked {
	if a == nil || b.before(a) {
		return b
	}
	return a
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

// unlock lets others in and then wakes whom the index found a volume for.
func (x *Index) unlock() {
	woken := x.woken
	x.woken = nil
	x.mu.Unlock()
	for _, claim := range woken {
		x.wake(claim)
	}
}
