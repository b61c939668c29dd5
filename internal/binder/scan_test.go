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

// scan answers as the index, but reads every volume and every pending claim each time.
type scan struct {
	volumes  map[string]*corev1.PersistentVolume
	reserved map[string]binder.ClaimRequest
	// versions are those in which volumes were reserved.
	versions map[string]string
	preBound map[types.UID]*corev1.PersistentVolumeClaim
	pending  map[string]binder.ClaimRequest
	// tentative are the volumes that are tentatively reserved for pending claims.
	tentative map[string]string
	woken     []string
}

func newScan() *scan {
	return &scan{
		volumes:   map[string]*corev1.PersistentVolume{},
		reserved:  map[string]binder.ClaimRequest{},
		versions:  map[string]string{},
		preBound:  map[types.UID]*corev1.PersistentVolumeClaim{},
		pending:   map[string]binder.ClaimRequest{},
		tentative: map[string]string{},
	}
}

func (s *scan) put(pv *corev1.PersistentVolume) {
	s.volumes[pv.Name] = pv
	if by, reserved := s.reserved[pv.Name]; reserved && s.versions[pv.Name] != pv.ResourceVersion {
		delete(s.reserved, pv.Name)
		if _, waits := s.pending[by.Claim.Name]; !waits && s.free(pv, by) {
			s.pending[by.Claim.Name] = by
			s.setTentative(by, pv)
		}
	}
	s.recheck(pv)
}

func (s *scan) remove(name string) {
	delete(s.volumes, name)
	delete(s.reserved, name)
	s.clearTentative(name)
}

func (s *scan) release(name string, claim types.UID) {
	if by, reserved := s.reserved[name]; reserved && by.Claim.UID == claim {
		delete(s.reserved, name)
		s.assign(s.volumes[name])
	}
}

func (s *scan) addPreBound(claim *corev1.PersistentVolumeClaim) {
	s.preBound[claim.UID] = claim
	if pv := s.volumes[claim.Spec.VolumeName]; pv != nil {
		s.recheck(pv)
	}
}

func (s *scan) removePreBound(claim *corev1.PersistentVolumeClaim) {
	if _, known := s.preBound[claim.UID]; known {
		delete(s.preBound, claim.UID)
		s.assign(s.volumes[claim.Spec.VolumeName])
	}
}

func (s *scan) removePending(claim string) {
	dropped := s.tentative[claim]
	delete(s.pending, claim)
	delete(s.tentative, claim)
	s.assign(s.volumes[dropped])
}

func (s *scan) reserve(request binder.ClaimRequest) *corev1.PersistentVolume {
	name := request.Claim.Name
	dropped := s.tentative[name]
	delete(s.pending, name)
	delete(s.tentative, name)
	found := s.findReserved(request)
	if found == nil {
		found = s.find(request)
	}
	switch {
	case found != nil && !binder.TiedTo(found, request.Claim):
		s.reserved[found.Name], s.versions[found.Name] = request, found.ResourceVersion
		s.clearTentative(found.Name)
	case found == nil && !request.Delayed:
		s.pending[name] = request
	}
	if found == nil || found.Name != dropped {
		s.assign(s.volumes[dropped])
	}
	return found
}

func (s *scan) findReserved(request binder.ClaimRequest) *corev1.PersistentVolume {
	for name, by := range s.reserved {
		switch {
		case by.Claim.UID != request.Claim.UID:
		case binder.Fit(s.volumes[name], request) == binder.Fits:
			return s.volumes[name]
		default:
			delete(s.reserved, name)
			s.assign(s.volumes[name])
		}
	}
	return nil
}

func (s *scan) find(request binder.ClaimRequest) *corev1.PersistentVolume {
	var tied, reserved, free []*corev1.PersistentVolume
	for _, pv := range s.volumes {
		by, isReserved := s.reserved[pv.Name]
		fits := binder.Fit(pv, request) == binder.Fits && (!isReserved || by.Claim.UID == request.Claim.UID)
		switch {
		case binder.TiedTo(pv, request.Claim) && pv.Annotations[volume.AnnBoundByController] != "" && binder.Fit(pv, binder.ClaimRequest{Claim: request.Claim}) == binder.Fits:
			tied = append(tied, pv)
		case fits && pv.Spec.ClaimRef != nil:
			reserved = append(reserved, pv)
		case !request.Delayed && s.free(pv, request):
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

// free reports whether a request may have a volume without a claimRef.
func (s *scan) free(pv *corev1.PersistentVolume, request binder.ClaimRequest) bool {
	by, reserved := s.reserved[pv.Name]
	if pv.Spec.ClaimRef != nil || reserved && by.Claim.UID != request.Claim.UID || binder.Fit(pv, request) != binder.Fits {
		return false
	}
	for other, volume := range s.tentative {
		if volume == pv.Name && other != request.Claim.Name {
			return false
		}
	}
	for uid, other := range s.preBound {
		cause := binder.Fit(pv, binder.ClaimRequest{Claim: other})
		if other.Spec.VolumeName == pv.Name && uid != request.Claim.UID && (cause == binder.Fits || cause == binder.OtherLabels) {
			return false
		}
	}
	return true
}

// assign reserves a volume tentatively for the largest pending claim that it fits.
func (s *scan) assign(pv *corev1.PersistentVolume) {
	if pv == nil || slices.Contains(slices.Collect(maps.Values(s.tentative)), pv.Name) {
		return
	}
	var fitting []binder.ClaimRequest
	for name, request := range s.pending {
		if s.tentative[name] == "" && pv.Spec.ClaimRef == nil && binder.Fit(pv, request) == binder.Fits {
			fitting = append(fitting, request)
		}
	}
	if len(fitting) == 0 {
		return
	}
	if best := slices.MinFunc(fitting, largerOlderFirst); s.free(pv, best) {
		s.setTentative(best, pv)
	}
}

// recheck checks a changed volume again.
func (s *scan) recheck(pv *corev1.PersistentVolume) {
	for name, volume := range s.tentative {
		if volume != pv.Name || s.free(pv, s.pending[name]) {
			continue
		}
		request := s.pending[name]
		delete(s.pending, name)
		delete(s.tentative, name)
		s.assign(pv)
		s.reassign(request)
		return
	}
	s.assign(pv)
}

func (s *scan) clearTentative(volume string) {
	for name, reserved := range s.tentative {
		if reserved == volume {
			delete(s.tentative, name)
			s.reassign(s.pending[name])
		}
	}
}

func (s *scan) reassign(request binder.ClaimRequest) {
	s.pending[request.Claim.Name] = request
	if pv := s.findFree(request); pv != nil {
		s.setTentative(request, pv)
	}
}

func (s *scan) findFree(request binder.ClaimRequest) *corev1.PersistentVolume {
	var free []*corev1.PersistentVolume
	for _, pv := range s.volumes {
		if s.free(pv, request) {
			free = append(free, pv)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return slices.MinFunc(free, smallerOlderFirst)
}

func (s *scan) setTentative(request binder.ClaimRequest, pv *corev1.PersistentVolume) {
	s.tentative[request.Claim.Name] = pv.Name
	s.woken = append(s.woken, request.Claim.Name)
}

// counts returns the number of volumes of a request's class by cause.
func (s *scan) counts(request binder.ClaimRequest) map[binder.Cause]int {
	counts := map[binder.Cause]int{}
	for _, pv := range s.volumes {
		if pv.Spec.StorageClassName != *request.Claim.Spec.StorageClassName {
			continue
		}
		cause := binder.Fit(pv, request)
		switch {
		case cause != binder.Deleting && cause != binder.Failed && binder.ReservedFor(pv, request.Claim):
			continue
		case cause == binder.Fits && !s.free(pv, request):
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

func largerOlderFirst(a, b binder.ClaimRequest) int {
	return cmp.Or(
		b.Claim.Spec.Resources.Requests.Storage().Cmp(*a.Claim.Spec.Resources.Requests.Storage()),
		a.Claim.CreationTimestamp.Compare(b.Claim.CreationTimestamp.Time),
		cmp.Compare(a.Claim.Name, b.Claim.Name),
	)
}
