package binder_test

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/internal/binder"
)

// scan is the index without an index: it looks at every volume and at every
// waiting claim, every time.
type scan struct {
	volumes map[string]*corev1.PersistentVolume
	taken   map[string]binder.Wish
	// versions are those in which volumes were taken.
	versions map[string]string
	asked    map[types.UID]*corev1.PersistentVolumeClaim
	waiting  map[string]binder.Wish
	// offers are the volumes kept for waiting claims.
	offers map[string]string
	woken  []string
}

func newScan() *scan {
	return &scan{
		volumes:  map[string]*corev1.PersistentVolume{},
		taken:    map[string]binder.Wish{},
		versions: map[string]string{},
		asked:    map[types.UID]*corev1.PersistentVolumeClaim{},
		waiting:  map[string]binder.Wish{},
		offers:   map[string]string{},
	}
}

func (s *scan) put(pv *corev1.PersistentVolume) {
	s.volumes[pv.Name] = pv
	if by, taken := s.taken[pv.Name]; taken && s.versions[pv.Name] != pv.ResourceVersion {
		delete(s.taken, pv.Name)
		if _, waits := s.waiting[by.Claim.Name]; !waits && s.free(pv, by) {
			s.waiting[by.Claim.Name] = by
			s.serve(by, pv)
		}
	}
	s.revise(pv)
}

func (s *scan) remove(name string) {
	delete(s.volumes, name)
	delete(s.taken, name)
	s.withdraw(name)
}

func (s *scan) giveBack(name string, claim types.UID) {
	if by, taken := s.taken[name]; taken && by.Claim.UID == claim {
		delete(s.taken, name)
		s.offer(s.volumes[name])
	}
}

func (s *scan) ask(claim *corev1.PersistentVolumeClaim) {
	s.asked[claim.UID] = claim
	if pv := s.volumes[claim.Spec.VolumeName]; pv != nil {
		s.revise(pv)
	}
}

func (s *scan) unask(claim *corev1.PersistentVolumeClaim) {
	if _, asked := s.asked[claim.UID]; asked {
		delete(s.asked, claim.UID)
		s.offer(s.volumes[claim.Spec.VolumeName])
	}
}

func (s *scan) leave(claim string) {
	offered := s.offers[claim]
	delete(s.waiting, claim)
	delete(s.offers, claim)
	s.offer(s.volumes[offered])
}

func (s *scan) take(wish binder.Wish) *corev1.PersistentVolume {
	name := wish.Claim.Name
	offered := s.offers[name]
	delete(s.waiting, name)
	delete(s.offers, name)
	found := s.findTaken(wish)
	if found == nil {
		found = s.find(wish)
	}
	switch {
	case found != nil && !binder.TiedTo(found, wish.Claim):
		s.taken[found.Name], s.versions[found.Name] = wish, found.ResourceVersion
		s.withdraw(found.Name)
	case found == nil && !wish.Delayed:
		s.waiting[name] = wish
	}
	if found == nil || found.Name != offered {
		s.offer(s.volumes[offered])
	}
	return found
}

func (s *scan) findTaken(wish binder.Wish) *corev1.PersistentVolume {
	for name, by := range s.taken {
		switch {
		case by.Claim.UID != wish.Claim.UID:
		case binder.Fit(s.volumes[name], wish) == binder.Fits:
			return s.volumes[name]
		default:
			delete(s.taken, name)
			s.offer(s.volumes[name])
		}
	}
	return nil
}

func (s *scan) find(wish binder.Wish) *corev1.PersistentVolume {
	var tied, reserved, free []*corev1.PersistentVolume
	for _, pv := range s.volumes {
		by, taken := s.taken[pv.Name]
		fits := binder.Fit(pv, wish) == binder.Fits && (!taken || by.Claim.UID == wish.Claim.UID)
		switch {
		case binder.TiedTo(pv, wish.Claim) && pv.Annotations[volume.AnnBoundByController] != "" && binder.Fit(pv, binder.Wish{Claim: wish.Claim}) == binder.Fits:
			tied = append(tied, pv)
		case fits && pv.Spec.ClaimRef != nil:
			reserved = append(reserved, pv)
		case !wish.Delayed && s.free(pv, wish):
			free = append(free, pv)
		}
	}
	for _, group := range [][]*corev1.PersistentVolume{tied, reserved, free} {
		if len(group) > 0 {
			return slices.MinFunc(group, smallerOlderFirst)
		}
	}
	return nil
}

// free tells whether a volume without a claimRef is to be had for a wish.
func (s *scan) free(pv *corev1.PersistentVolume, wish binder.Wish) bool {
	by, taken := s.taken[pv.Name]
	if pv.Spec.ClaimRef != nil || taken && by.Claim.UID != wish.Claim.UID || binder.Fit(pv, wish) != binder.Fits {
		return false
	}
	for other, offered := range s.offers {
		if offered == pv.Name && other != wish.Claim.Name {
			return false
		}
	}
	for uid, other := range s.asked {
		cause := binder.Fit(pv, binder.Wish{Claim: other})
		if other.Spec.VolumeName == pv.Name && uid != wish.Claim.UID && (cause == binder.Fits || cause == binder.OtherLabels) {
			return false
		}
	}
	return true
}

// offer keeps a volume for the largest claim that waits for such a one.
func (s *scan) offer(pv *corev1.PersistentVolume) {
	if pv == nil || slices.Contains(slices.Collect(maps.Values(s.offers)), pv.Name) {
		return
	}
	var heirs []binder.Wish
	for name, wish := range s.waiting {
		if s.offers[name] == "" && pv.Spec.ClaimRef == nil && binder.Fit(pv, wish) == binder.Fits {
			heirs = append(heirs, wish)
		}
	}
	if len(heirs) == 0 {
		return
	}
	if heir := slices.MinFunc(heirs, largerOlderFirst); s.free(pv, heir) {
		s.serve(heir, pv)
	}
}

// revise looks again at a volume that changed.
func (s *scan) revise(pv *corev1.PersistentVolume) {
	for name, offered := range s.offers {
		if offered != pv.Name || s.free(pv, s.waiting[name]) {
			continue
		}
		wish := s.waiting[name]
		delete(s.waiting, name)
		delete(s.offers, name)
		s.offer(pv)
		s.settle(wish)
		return
	}
	s.offer(pv)
}

func (s *scan) withdraw(volume string) {
	for name, offered := range s.offers {
		if offered == volume {
			delete(s.offers, name)
			s.settle(s.waiting[name])
		}
	}
}

func (s *scan) settle(wish binder.Wish) {
	s.waiting[wish.Claim.Name] = wish
	if pv := s.findFree(wish); pv != nil {
		s.serve(wish, pv)
	}
}

func (s *scan) findFree(wish binder.Wish) *corev1.PersistentVolume {
	var free []*corev1.PersistentVolume
	for _, pv := range s.volumes {
		if s.free(pv, wish) {
			free = append(free, pv)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return slices.MinFunc(free, smallerOlderFirst)
}

func (s *scan) serve(wish binder.Wish, pv *corev1.PersistentVolume) {
	s.offers[wish.Claim.Name] = pv.Name
	s.woken = append(s.woken, wish.Claim.Name)
}

// counts are the volumes of a wish's class by cause.
func (s *scan) counts(wish binder.Wish) map[binder.Cause]int {
	counts := map[binder.Cause]int{}
	for _, pv := range s.volumes {
		if pv.Spec.StorageClassName != *wish.Claim.Spec.StorageClassName {
			continue
		}
		cause := binder.Fit(pv, wish)
		switch {
		case cause != binder.Deleting && cause != binder.Failed && binder.ReservedFor(pv, wish.Claim):
			continue
		case cause == binder.Fits && !s.free(pv, wish):
			cause = binder.Reserved
		}
		counts[cause]++
	}
	return counts
}

func smallerOlderFirst(a, b *corev1.PersistentVolume) int {
	return cmp.Or(
		a.Spec.Capacity.Storage().Cmp(*b.Spec.Capacity.Storage()),
		cmp.Compare(len(a.Spec.AccessModes), len(b.Spec.AccessModes)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

func largerOlderFirst(a, b binder.Wish) int {
	return cmp.Or(
		b.Claim.Spec.Resources.Requests.Storage().Cmp(*a.Claim.Spec.Resources.Requests.Storage()),
		a.Claim.CreationTimestamp.Compare(b.Claim.CreationTimestamp.Time),
		cmp.Compare(a.Claim.Name, b.Claim.Name),
	)
}
