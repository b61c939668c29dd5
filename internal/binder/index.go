package binder

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Index holds the cluster's volumes in the order in which claims take them: per class and
// kind, by capacity, then age, then name. It also holds the pending claims. An informer feeds
// it with Put and Remove; workers reserve volumes with Reserve. Returned volumes are shared and
// must not be changed. All methods can be called concurrently.
type Index struct {
	mu sync.Mutex
	// volumes are all volumes, by name.
	volumes map[string]*indexedVolume
	// classes hold the same volumes in order.
	classes map[string]*classIndex
	// preBoundVolumes are the volumes by the claim that their claimRef names: the first of them, which has the next.
	preBoundVolumes map[types.NamespacedName]*indexedVolume
	// reservations are the volumes that a worker is binding: the API server may have the write
	// already, and the informer not yet. A reservation ends with Release, or when the
	// informer shows another version of the volume. Then either the write was seen, or it will
	// meet a conflict. The claim then keeps a tentative reservation, for its retry.
	reservations map[string]reservation
	// reservedBy are the names of the reserved volumes, by claim: a claim reserves one.
	reservedBy map[types.UID]string
	// preBoundClaims are the claims that name a volume, bound to it or not.
	preBoundClaims map[string][]*corev1.PersistentVolumeClaim
	// pending are the claims without a volume.
	pending pendingClaims
	// woken are the claims that got a volume since. They are woken after the unlock.
	woken []types.NamespacedName
	wake  func(claim types.NamespacedName)
}

// NewIndex returns an empty index. It calls wake for a pending claim as soon as it reserves a
// volume for it, tentatively: the claim must then call Reserve or RemovePending.
func NewIndex(wake func(claim types.NamespacedName)) *Index {
	return &Index{
		volumes:         map[string]*indexedVolume{},
		classes:         map[string]*classIndex{},
		preBoundVolumes: map[types.NamespacedName]*indexedVolume{},
		reservations:    map[string]reservation{},
		reservedBy:      map[types.UID]string{},
		preBoundClaims:  map[string][]*corev1.PersistentVolumeClaim{},
		pending:         newPendingClaims(),
		wake:            wake,
	}
}

func (x *Index) add(v *indexedVolume) {
	x.volumes[v.name()] = v
	class := v.class()
	if x.classes[class] == nil {
		x.classes[class] = newClassIndex()
	}
	x.classes[class].put(v)
	if ref := v.pv.Spec.ClaimRef; ref != nil {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		v.next = x.preBoundVolumes[key]
		x.preBoundVolumes[key] = v
	}
}

func (x *Index) remove(name string) {
	v, exists := x.volumes[name]
	if !exists {
		return
	}
	delete(x.volumes, name)
	class := v.class()
	x.classes[class].remove(v)
	if x.classes[class].empty() {
		delete(x.classes, class)
	}
	if ref := v.pv.Spec.ClaimRef; ref != nil {
		x.unlink(v, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	}
}

// unlink forgets that a volume's claimRef names a claim.
func (x *Index) unlink(v *indexedVolume, claim types.NamespacedName) {
	first := x.preBoundVolumes[claim]
	switch {
	case first != v:
		for first.next != v {
			first = first.next
		}
		first.next = v.next
	case v.next != nil:
		x.preBoundVolumes[claim] = v.next
	default:
		delete(x.preBoundVolumes, claim)
	}
}

func (x *Index) isReserved(name string) bool {
	_, reserved := x.reservations[name]
	return reserved || x.pending.tentative[name] != nil
}

// reindex moves a volume within the index of its class after its reservation began or ended:
// a search skips reserved volumes.
func (x *Index) reindex(name string) {
	v := x.volumes[name]
	if v == nil || v.reserved == x.isReserved(name) {
		return
	}
	class := x.classes[v.class()]
	class.remove(v)
	v.reserved = !v.reserved
	class.put(v)
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

// reservation is a claim that a worker binds to a version of a volume.
type reservation struct {
	candidate
	version string
}
