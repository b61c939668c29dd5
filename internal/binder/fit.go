// Package binder decides which volume a claim gets.
//
// It is pure: it holds no client and no clock; it reads volumes and claims and answers. Index
// keeps the free volumes and the pending claims in order. It finds the smallest volume that
// fits a claim, and the largest pending claim that fits a new volume. By the same rules it
// explains why a claim got none. BindVolume and BindClaim set the fields of objects that are
// tied to each other.
//
// The claim reconciler calls it; nothing here writes to the API server.
package binder

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
)

// ClaimRequest is a claim's request for a volume.
type ClaimRequest struct {
	// Claim is the claim that requests the volume.
	Claim *corev1.PersistentVolumeClaim
	// Node is the node of the claim's pod. Nil: there is none yet, or it does not matter.
	Node *corev1.Node
	// Delayed is true if the claim waits for its first consumer and no node is chosen yet. The
	// claim then gets only a volume with a claimRef to it.
	Delayed bool
	// Provisioning is true if the scheduler chose the node for a volume that is yet to be
	// provisioned. The claim then gets only a volume with a claimRef to it.
	Provisioning bool
}

// onlyPreBound reports whether the claim gets only a volume with a claimRef to it. A claim with a
// data source, such as a clone or a restore, must not get an empty volume that happens to fit.
// Its user would take the empty volume for the data.
func (w ClaimRequest) onlyPreBound() bool {
	return w.Delayed || w.Provisioning || w.Claim.Spec.DataSource != nil || w.Claim.Spec.DataSourceRef != nil
}

// Fit returns the first cause why a volume does not suit a request, or Fits. A volume with a
// claimRef to the claim need not match its class or its labels: the claimRef overrides them.
func Fit(pv *corev1.PersistentVolume, request ClaimRequest) Cause {
	s := candidateOf(request)
	return s.fit(indexVolume(pv))
}

// candidate is a claim that may get a volume: a request with all compared fields read once.
type candidate struct {
	claim    types.NamespacedName
	uid      types.UID
	created  int64
	class    string
	kind     kind
	size     size
	selector labels.Selector
	node     *corev1.Node
}

func candidateOf(request ClaimRequest) candidate {
	claim := request.Claim
	return candidate{
		claim:    types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name},
		uid:      claim.UID,
		created:  claim.CreationTimestamp.Unix(),
		class:    volume.GetPersistentVolumeClaimClass(claim),
		kind:     requestedKind(claim),
		size:     sizeOf(RequestOf(claim)),
		selector: selectorOf(claim.Spec.Selector),
		node:     request.Node,
	}
}

// fit checks everything, in the order of the causes.
func (s *candidate) fit(v *indexedVolume) Cause {
	reserved := s.reservedFor(v.pv)
	if cause := v.unusable(); cause != Fits {
		return cause
	}
	if v.pv.Spec.ClaimRef != nil && !reserved {
		return Reserved
	}
	if cause := v.kind.Value().mismatch(s.kind); cause != Fits {
		return cause
	}
	if !reserved && v.class() != s.class {
		return OtherClass
	}
	return s.fitInKind(v, reserved)
}

// fitInKind checks the rest for a volume of the right class and kind.
func (s *candidate) fitInKind(v *indexedVolume, reserved bool) Cause {
	switch {
	case !reserved && s.selector != nil && !s.selector.Matches(labels.Set(v.pv.Labels)):
		return OtherLabels
	case v.size.compare(s.size) < 0:
		return TooSmall
	case s.node != nil && volume.CheckNodeAffinity(v.pv, s.node.Labels) != nil:
		return OtherNode
	}
	return Fits
}

func (s *candidate) reservedFor(pv *corev1.PersistentVolume) bool {
	return refersTo(pv.Spec.ClaimRef, s.claim, s.uid)
}

func (s *candidate) tiedTo(pv *corev1.PersistentVolume) bool {
	return s.reservedFor(pv) && pv.Spec.ClaimRef.UID == s.uid
}

// ReservedFor reports whether a volume's claimRef names this very claim: by name if the
// reference has no UID, else by name and UID. Without a UID, people reserve a volume for a
// claim that does not exist yet.
func ReservedFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return refersTo(pv.Spec.ClaimRef, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, claim.UID)
}

func refersTo(ref *corev1.ObjectReference, claim types.NamespacedName, uid types.UID) bool {
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == uid)
}

// TiedTo reports whether a volume is bound to this very claim, by UID: binding is past its
// point of no return.
func TiedTo(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return ReservedFor(pv, claim) && pv.Spec.ClaimRef.UID == claim.UID
}

// selectorOf returns nil for a claim without a selector. The API server refuses claims with an
// invalid selector.
func selectorOf(selector *metav1.LabelSelector) labels.Selector {
	if selector == nil {
		return nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}
