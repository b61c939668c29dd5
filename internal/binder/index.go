package binder

import (
	"cmp"
	"sync"

	"github.com/google/btree"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
)

const treeDegree = 32

// Index holds the cluster's volumes in the order in which claims take them: per
// class and volumeMode, by capacity, then age, then name. An informer feeds it
// with Put and Remove; workers take volumes with Take. Volumes that it returns
// are shared: they are not to be changed. All methods can be called at once.
type Index struct {
	mu sync.Mutex
	// volumes are all that there are, by name.
	volumes map[string]*corev1.PersistentVolume
	// free are those that no claimRef ties, in order.
	free map[shelf]*btree.BTreeG[*corev1.PersistentVolume]
	// named are those whose claimRef names a claim.
	named map[types.NamespacedName]map[string]*corev1.PersistentVolume
	// taken are the volumes that a worker is binding: what the API server may
	// know already and the informer doesn't. A taking ends with GiveBack, or as
	// soon as the informer shows another version of the volume: the write was
	// seen then, or it will meet a conflict.
	taken map[string]taking
	// asked are the claims that name a volume, bound to it or not.
	asked map[string]map[types.UID]*corev1.PersistentVolumeClaim
}

// taking is a claim that a worker binds to a version of a volume.
type taking struct {
	claim   types.UID
	version string
}

// shelf is where volumes lie that the same claims could take.
type shelf struct {
	class string
	mode  corev1.PersistentVolumeMode
}

// NewIndex makes an empty index.
func NewIndex() *Index {
	return &Index{
		volumes: map[string]*corev1.PersistentVolume{},
		free:    map[shelf]*btree.BTreeG[*corev1.PersistentVolume]{},
		named:   map[types.NamespacedName]map[string]*corev1.PersistentVolume{},
		taken:   map[string]taking{},
		asked:   map[string]map[types.UID]*corev1.PersistentVolumeClaim{},
	}
}

// Put adds a volume or replaces what was known of it.
func (x *Index) Put(pv *corev1.PersistentVolume) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(pv.Name)
	x.volumes[pv.Name] = pv
	if x.taken[pv.Name].version != pv.ResourceVersion {
		delete(x.taken, pv.Name)
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if x.named[key] == nil {
			x.named[key] = map[string]*corev1.PersistentVolume{}
		}
		x.named[key][pv.Name] = pv
		return
	}
	x.shelf(shelfOf(pv)).ReplaceOrInsert(pv)
}

// Remove forgets a volume.
func (x *Index) Remove(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(name)
	delete(x.taken, name)
}

// Ask notes that a claim names a volume in spec.volumeName: no claim that takes
// what comes is given the volume while the claim could have it, or has it and the
// volume was untied by mistake.
func (x *Index) Ask(claim *corev1.PersistentVolumeClaim) {
	x.mu.Lock()
	defer x.mu.Unlock()
	name := claim.Spec.VolumeName
	if x.asked[name] == nil {
		x.asked[name] = map[types.UID]*corev1.PersistentVolumeClaim{}
	}
	x.asked[name][claim.UID] = claim
}

// Unask forgets what Ask noted, and returns the volume that others may have now;
// nil where nothing was noted or there is no such volume.
func (x *Index) Unask(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	x.mu.Lock()
	defer x.mu.Unlock()
	name := claim.Spec.VolumeName
	if _, noted := x.asked[name][claim.UID]; !noted {
		return nil
	}
	delete(x.asked[name], claim.UID)
	if len(x.asked[name]) == 0 {
		delete(x.asked, name)
	}
	return x.volumes[name]
}

// Take finds the volume for a wish and keeps every other claim from taking it,
// until the index sees the volume tied to a claim or GiveBack is called. It
// returns nil where no volume fits.
//
// A volume tied or reserved to the claim by its claimRef comes first, then the
// smallest of those that fit; among equals the oldest, then the first by name.
func (x *Index) Take(wish Wish) *corev1.PersistentVolume {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := x.findNamed(wish)
	if found == nil && !wish.Delayed {
		found = x.findFree(wish)
	}
	if found != nil && !TiedTo(found, wish.Claim) {
		x.take(found, wish)
	}
	return found
}

// TakeNamed takes the volume of this name for the claim that asks for it by
// spec.volumeName. It tells why not where the volume is another's; nil and Fits
// mean that there is no such volume.
func (x *Index) TakeNamed(wish Wish) (*corev1.PersistentVolume, Cause) {
	x.mu.Lock()
	defer x.mu.Unlock()
	pv, exists := x.volumes[wish.Claim.Spec.VolumeName]
	switch {
	case !exists:
		return nil, Fits
	case TiedTo(pv, wish.Claim):
		return pv, Fits
	case !x.available(pv, wish.Claim):
		return nil, Taken
	}
	if cause := Fit(pv, wish); !suitsByName(cause) {
		return nil, cause
	}
	x.take(pv, wish)
	return pv, Fits
}

func (x *Index) take(pv *corev1.PersistentVolume, wish Wish) {
	x.taken[pv.Name] = taking{claim: wish.Claim.UID, version: pv.ResourceVersion}
}

// suitsByName tells of a claim that names its volume whether the cause leaves it
// to the claim: whoever wrote the name is not asked for labels too.
func suitsByName(cause Cause) bool { return cause == Fits || cause == OtherLabels }

// GiveBack ends what Take began where the volume wasn't tied to the claim after
// all.
func (x *Index) GiveBack(name string, claim types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.taken[name].claim == claim {
		delete(x.taken, name)
	}
}

// findNamed finds the volume whose claimRef names the claim: one that is tied to
// it already, whatever became of either since, or the smallest that fits.
func (x *Index) findNamed(wish Wish) *corev1.PersistentVolume {
	var tied, reserved *corev1.PersistentVolume
	for _, pv := range x.named[types.NamespacedName{Namespace: wish.Claim.Namespace, Name: wish.Claim.Name}] {
		switch {
		case TiedTo(pv, wish.Claim) && pv.Annotations[volume.AnnBoundByController] != "" && pv.DeletionTimestamp.IsZero():
			tied = first(tied, pv)
		case x.available(pv, wish.Claim) && Fit(pv, wish) == Fits:
			reserved = first(reserved, pv)
		}
	}
	if tied != nil {
		return tied
	}
	return reserved
}

// first is the one of two volumes that claims take first; a may be nil.
func first(a, b *corev1.PersistentVolume) *corev1.PersistentVolume {
	if a == nil || before(b, a) {
		return b
	}
	return a
}

func (x *Index) findFree(wish Wish) *corev1.PersistentVolume {
	tree := x.free[shelf{volume.GetPersistentVolumeClaimClass(wish.Claim), volumeMode(wish.Claim.Spec.VolumeMode)}]
	if tree == nil {
		return nil
	}
	var best *corev1.PersistentVolume
	tree.AscendGreaterOrEqual(smallest(wish.Claim), func(pv *corev1.PersistentVolume) bool {
		if x.available(pv, wish.Claim) && x.askedBy(pv, wish.Claim) == nil && Fit(pv, wish) == Fits {
			best = pv
		}
		return best == nil
	})
	return best
}

func (x *Index) available(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	by, taken := x.taken[pv.Name]
	return !taken || by.claim == claim.UID
}

// askedBy is a claim other than this one that names the volume, and has it or
// could have it.
func (x *Index) askedBy(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	for uid, other := range x.asked[pv.Name] {
		if uid != claim.UID && (Completed(other) || suitsByName(Fit(pv, Wish{Claim: other}))) {
			return other
		}
	}
	return nil
}

func (x *Index) remove(name string) {
	pv, exists := x.volumes[name]
	if !exists {
		return
	}
	delete(x.volumes, name)
	if ref := pv.Spec.ClaimRef; ref != nil {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		delete(x.named[key], name)
		if len(x.named[key]) == 0 {
			delete(x.named, key)
		}
		return
	}
	tree := x.shelf(shelfOf(pv))
	tree.Delete(pv)
	if tree.Len() == 0 {
		delete(x.free, shelfOf(pv))
	}
}

func (x *Index) shelf(key shelf) *btree.BTreeG[*corev1.PersistentVolume] {
	if x.free[key] == nil {
		x.free[key] = btree.NewG(treeDegree, before)
	}
	return x.free[key]
}

func shelfOf(pv *corev1.PersistentVolume) shelf {
	return shelf{volume.GetPersistentVolumeClass(pv), volumeMode(pv.Spec.VolumeMode)}
}

// before orders volumes as claims take them.
func before(a, b *corev1.PersistentVolume) bool {
	return cmp.Or(
		cmp.Compare(capacityOf(a), capacityOf(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

// smallest stands before every volume that is large enough for a claim: it has
// the claim's size, no age and no name.
func smallest(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
	}}
}
