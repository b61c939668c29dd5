// Package binder decides which volume a claim gets.
//
// It is pure: it holds no client and no clock, it reads volumes and claims and
// answers. Index keeps the free volumes and the waiting claims in order: it finds
// the smallest volume that fits a claim, the largest waiting claim that fits a new
// volume, and says, from the same rules, why a claim got none. BindVolume and
// BindClaim say what the objects look like once they are tied to each other.
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

// Wish is what a claim asks of a volume.
type Wish struct {
	// Claim that asks.
	Claim *corev1.PersistentVolumeClaim
	// Node that the claim's pod was placed on. Nil: none yet, or it doesn't
	// matter.
	Node *corev1.Node
	// Delayed is true where the claim waits for its first consumer, and no node
	// is chosen: only volumes made for this very claim are taken.
	Delayed bool
	// Provisioning is true where the scheduler chose the node for a volume that is yet
	// to be made: only volumes made for this very claim are taken.
	Provisioning bool
}

// onlyOwn tells whether nothing is taken but what was made for this very claim. A
// claim that is to begin with certain data, a copy or a restore, isn't given any
// empty volume that happens to fit: its user would take it for the data.
func (w Wish) onlyOwn() bool {
	return w.Delayed || w.Provisioning || w.Claim.Spec.DataSource != nil || w.Claim.Spec.DataSourceRef != nil
}

// Cause says why a volume isn't given to a claim.
type Cause string

// Causes, in the order in which they are asked; Fits is the absence of one.
const (
	Fits                 Cause = ""
	Deleting             Cause = "being deleted"
	Failed               Cause = "failed"
	Reserved             Cause = "reserved"
	Taken                Cause = "being bound to another claim"
	OtherVolumeMode      Cause = "other volumeMode"
	OtherAccessModes     Cause = "other access modes"
	OtherAttributesClass Cause = "other volumeAttributesClass"
	OtherClass           Cause = "other class"
	OtherLabels          Cause = "not selected by the claim"
	TooSmall             Cause = "too small"
	OtherNode            Cause = "not usable on the pod's node"
)

// Fit tells whether a volume suits a wish and, if not, the first cause. A volume
// that was made for the claim by name is asked neither for its class nor for its
// labels: whoever wrote the name chose it.
func Fit(pv *corev1.PersistentVolume, wish Wish) Cause {
	s := seekerOf(wish)
	return s.fit(stock(pv))
}

// seeker is a wish, with all that is compared read from it once.
type seeker struct {
	claim    types.NamespacedName
	uid      types.UID
	created  int64
	class    string
	kind     kind
	size     size
	selector labels.Selector
	node     *corev1.Node
}

func seekerOf(wish Wish) seeker {
	claim := wish.Claim
	return seeker{
		claim:    types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name},
		uid:      claim.UID,
		created:  claim.CreationTimestamp.Unix(),
		class:    volume.GetPersistentVolumeClaimClass(claim),
		kind:     kindAskedBy(claim),
		size:     sizeOf(RequestOf(claim)),
		selector: selectorOf(claim.Spec.Selector),
		node:     wish.Node,
	}
}

// fit asks everything, in the order of the causes.
func (s *seeker) fit(v *stocked) Cause {
	chosen := s.chosenFor(v.pv)
	if cause := v.lost(); cause != Fits {
		return cause
	}
	if v.pv.Spec.ClaimRef != nil && !chosen {
		return Reserved
	}
	if cause := v.kind.gives(s.kind); cause != Fits {
		return cause
	}
	if !chosen && v.class != s.class {
		return OtherClass
	}
	return s.fitInKind(v, chosen)
}

// fitInKind asks what remains to be asked of a volume whose class and kind are
// right.
func (s *seeker) fitInKind(v *stocked, chosen bool) Cause {
	switch {
	case !chosen && s.selector != nil && !s.selector.Matches(labels.Set(v.pv.Labels)):
		return OtherLabels
	case v.size.compare(s.size) < 0:
		return TooSmall
	case s.node != nil && volume.CheckNodeAffinity(v.pv, s.node.Labels) != nil:
		return OtherNode
	}
	return Fits
}

func (s *seeker) chosenFor(pv *corev1.PersistentVolume) bool {
	return names(pv.Spec.ClaimRef, s.claim, s.uid)
}

func (s *seeker) tiedTo(pv *corev1.PersistentVolume) bool {
	return s.chosenFor(pv) && pv.Spec.ClaimRef.UID == s.uid
}

// ReservedFor tells whether a volume's claimRef names this very claim: by name
// where the reference has no UID, which is how people reserve a volume for a
// claim that doesn't exist yet, else by name and UID.
func ReservedFor(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return names(pv.Spec.ClaimRef, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, claim.UID)
}

func names(ref *corev1.ObjectReference, claim types.NamespacedName, uid types.UID) bool {
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == uid)
}

// TiedTo tells whether a volume is bound to this very claim, by UID: the point of
// no return of binding is behind it.
func TiedTo(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return ReservedFor(pv, claim) && pv.Spec.ClaimRef.UID == claim.UID
}

// selectorOf is nil for a claim that has no selector. The API server refuses
// claims whose selector can't be parsed.
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
