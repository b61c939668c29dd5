package controllers

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/uses"
)

// check checks a cluster at rest: which claim has which volume, and that no claim waits in vain.
func (s *scenario) check(t *rapid.T) {
	claims, volumes := s.claimsThere(), s.volumesThere()
	boundBy := map[string]string{}
	for _, claim := range claims {
		switch {
		case !claim.DeletionTimestamp.IsZero():
			s.checkUsed(t, claim)
			continue
		case !binder.Completed(claim):
			s.checkWaiting(t, claim, volumes)
			continue
		}
		s.checkBound(t, claim, volumes)
		if other := boundBy[claim.Spec.VolumeName]; other != "" {
			t.Fatalf("claims %s and %s share volume %s", other, claim.Name, claim.Spec.VolumeName)
		}
		boundBy[claim.Spec.VolumeName] = claim.Name
	}
	for _, pv := range volumes {
		s.checkVolume(t, pv, claims)
	}
	s.checkStorage(t, claims, volumes)
}

// checkBound expects a bound claim and its volume to be tied to each other, and to
// be so for good.
func (s *scenario) checkBound(t *rapid.T, claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) {
	at := slices.IndexFunc(volumes, func(pv *corev1.PersistentVolume) bool { return pv.Name == claim.Spec.VolumeName })
	if at < 0 {
		t.Fatalf("the volume %s of claim %s is gone", claim.Spec.VolumeName, claim.Name)
	}
	pv := volumes[at]
	switch first, known := s.bound[claim.UID]; {
	case !binder.TiedTo(pv, claim):
		t.Fatalf("claim %s is bound to volume %s, which is tied to %+v", claim.Name, pv.Name, pv.Spec.ClaimRef)
	case claim.Status.Phase != corev1.ClaimBound || pv.Status.Phase != corev1.VolumeBound:
		t.Fatalf("claim %s is %s and its volume %s is %s", claim.Name, claim.Status.Phase, pv.Name, pv.Status.Phase)
	case known && first != pv.UID:
		t.Fatalf("claim %s lost the volume that it was bound to: it has %s now", claim.Name, pv.Name)
	case slices.Contains(claim.Finalizers, stowagev1alpha1.ProvisioningFinalizer):
		t.Fatalf("claim %s is bound and still being provisioned", claim.Name)
	}
	s.bound[claim.UID] = pv.UID
}

// checkWaiting expects that nothing that the claim could have is kept from it.
func (s *scenario) checkWaiting(t *rapid.T, claim *corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) {
	if claim.Status.Phase != corev1.ClaimPending {
		t.Fatalf("claim %s is %s, and waits", claim.Name, claim.Status.Phase)
	}
	if s.bound[claim.UID] != "" {
		t.Fatalf("claim %s was bound, and waits", claim.Name)
	}
	request, placed := s.requestOf(claim)
	if placed && claim.Spec.Selector == nil && claim.Spec.VolumeName == "" && s.class(storageclass.Of(claim)) != nil {
		t.Fatalf("no volume is made for claim %s of class %s: %+v", claim.Name, storageclass.Of(claim), claim.Status.Conditions)
	}
	for _, pv := range volumes {
		if s.couldHave(pv, request) {
			t.Fatalf("claim %s waits, and volume %s fits it: %+v", claim.Name, pv.Name, claim.Status.Conditions)
		}
	}
}

// couldHave reports whether a volume fits a request, and is reserved for no other claim.
func (s *scenario) couldHave(pv *corev1.PersistentVolume, request binder.ClaimRequest) bool {
	if name := request.Claim.Spec.VolumeName; name != "" && name != pv.Name {
		return false
	}
	if request.Delayed && !binder.ReservedFor(pv, request.Claim) {
		return false
	}
	for _, other := range s.claimsThere() {
		if other.UID != request.Claim.UID && other.Spec.VolumeName == pv.Name {
			return false
		}
	}
	return binder.Fit(pv, request) == binder.Fits
}

// requestOf returns a claim's request, and whether its node is known: with several pods, any of
// them may have decided.
func (s *scenario) requestOf(claim *corev1.PersistentVolumeClaim) (request binder.ClaimRequest, placed bool) {
	request = binder.ClaimRequest{Claim: claim}
	if !storageclass.WaitsForConsumer(s.class(storageclass.Of(claim))) {
		return request, true
	}
	request.Delayed = true
	for _, object := range s.all(&corev1.PodList{}) {
		pod := object.(*corev1.Pod)
		placed = placed || pod.Spec.NodeName != "" && slices.Contains(index.ClaimsOf(pod), claim.Name)
	}
	return request, placed
}

// checkUsed expects a reason for which a deleted claim is still there.
func (s *scenario) checkUsed(t *rapid.T, claim *corev1.PersistentVolumeClaim) {
	for _, object := range s.all(&corev1.PodList{}) {
		if uses.Of(claim)(*object.(*corev1.Pod)) {
			return
		}
	}
	t.Fatalf("claim %s is deleted and unused, and it is still there: %v", claim.Name, claim.Finalizers)
}

// checkVolume expects the phase that the volume and its claim call for, and that
// none is deleted under a claim.
func (s *scenario) checkVolume(t *rapid.T, pv *corev1.PersistentVolume, claims []*corev1.PersistentVolumeClaim) {
	at := slices.IndexFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool { return binder.TiedTo(pv, claim) })
	want := []corev1.PersistentVolumePhase{corev1.VolumeAvailable}
	switch {
	case at >= 0 && claims[at].Spec.VolumeName == pv.Name:
		want = []corev1.PersistentVolumePhase{corev1.VolumeBound}
	case at >= 0:
		// A person tied it, by UID, to a claim that it does not fit.
		return
	case pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != "":
		want = []corev1.PersistentVolumePhase{corev1.VolumeReleased, corev1.VolumeFailed}
	}
	switch {
	case !slices.Contains(want, pv.Status.Phase):
		t.Fatalf("volume %s is %s, with the claimRef %+v", pv.Name, pv.Status.Phase, pv.Spec.ClaimRef)
	case !pv.DeletionTimestamp.IsZero() && pv.Status.Phase != corev1.VolumeBound:
		t.Fatalf("volume %s is deleted and unclaimed, and it is still there: %v", pv.Name, pv.Finalizers)
	}
}

// checkStorage expects that all storage is some volume's, or that of an operation which a claim records: one that is
// deleted, until no pod uses the claim, or one that waits again for a pod, since its pod went before the volume was recorded.
func (s *scenario) checkStorage(t *rapid.T, claims []*corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) {
	expected := 0
	recorded := map[string]bool{}
	for _, pv := range volumes {
		if pv.Spec.CSI == nil {
			continue
		}
		expected++
		recorded[pv.Name] = true
		if !s.storage.Has(pv.Spec.CSI.VolumeHandle) {
			t.Fatalf("volume %s has lost its storage", pv.Name)
		}
	}
	for _, claim := range claims {
		name := provisioned.VolumeID(claim)
		mayBePending := !claim.DeletionTimestamp.IsZero() || waitsForPod(claim)
		if mayBePending && provisioned.HasIntent(claim) && !recorded[name] && s.storage.Has(name) {
			expected, recorded[name] = expected+1, true
		}
	}
	for name := range s.retained {
		if !recorded[name] && s.storage.Has(name) {
			expected++
		}
	}
	if s.storage.Len() != expected {
		t.Fatalf("there are %d pieces of storage, and %d that are recorded", s.storage.Len(), expected)
	}
}

// waitsForPod reports whether a claim says that it waits for a pod to use it.
func waitsForPod(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return condition.Type == stowagev1alpha1.BindableCondition && condition.Reason == bindable.ReasonWaitForFirstConsumer
	})
}
