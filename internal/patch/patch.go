// Package patch builds patches by hand, for writes that every bind makes. It fences each with
// the resourceVersion or the UID of the object that the decision was based on.
package patch

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// Written is a handwritten patch. A patch that is computed from two objects costs more than
// all the rest of a bind. It takes a deep copy, two encodings, two decodings and a comparison.
type Written struct {
	Kind types.PatchType
	Body any
}

// Type implements client.Patch.
func (p Written) Type() types.PatchType { return p.Kind }

// Data implements client.Patch.
func (p Written) Data(client.Object) ([]byte, error) { return json.Marshal(p.Body) }

// Metadata is the change of metadata, and the version that it applies to.
type Metadata struct {
	// ResourceVersion is the fence: of two writers that read the same version, one succeeds.
	ResourceVersion string             `json:"resourceVersion"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
	Finalizers      []string           `json:"finalizers,omitzero"`
}

func metadataChange(before, after metav1.Object) Metadata {
	change := Metadata{
		ResourceVersion: before.GetResourceVersion(),
		Annotations:     Changes(before.GetAnnotations(), after.GetAnnotations(), func(a, b string) bool { return a == b }),
	}
	if !slices.Equal(before.GetFinalizers(), after.GetFinalizers()) {
		change.Finalizers = append([]string{}, after.GetFinalizers()...)
	}
	return change
}

func specPatch[S any](metadata Metadata, spec S) client.Patch {
	return Written{types.MergePatchType, struct {
		Metadata Metadata `json:"metadata"`
		Spec     S        `json:"spec"`
	}{metadata, spec}}
}

// ClaimRef ties a volume to the claim of after. Explicit nulls remove the fields of an earlier
// reference.
func ClaimRef(before, after *corev1.PersistentVolume) client.Patch {
	type reference struct {
		*corev1.ObjectReference
		ResourceVersion *string `json:"resourceVersion"`
		FieldPath       *string `json:"fieldPath"`
	}
	type spec struct {
		ClaimRef reference `json:"claimRef"`
	}
	return specPatch(metadataChange(before, after), spec{reference{ObjectReference: after.Spec.ClaimRef}})
}

// VolumeName ties a claim to the volume that after names.
func VolumeName(before, after *corev1.PersistentVolumeClaim) client.Patch {
	type spec struct {
		VolumeName string `json:"volumeName"`
	}
	return specPatch(metadataChange(before, after), spec{after.Spec.VolumeName})
}

// VolumePhase sets a volume's phase and message.
func VolumePhase(pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, message string) client.Patch {
	type status struct {
		Phase   corev1.PersistentVolumePhase `json:"phase"`
		Message string                       `json:"message"`
		Reason  string                       `json:"reason"`
	}
	return Written{types.MergePatchType, struct {
		Metadata Metadata `json:"metadata"`
		Status   status   `json:"status"`
	}{Metadata{ResourceVersion: pv.ResourceVersion}, status{Phase: phase, Message: message}}}
}

// BoundStatus writes the fields of a bound claim's status that differ: another writer may own
// the rest by now. It is a strategic merge patch, because a JSON merge patch would replace the
// conditions of other writers.
func BoundStatus(before corev1.PersistentVolumeClaimStatus, after *corev1.PersistentVolumeClaim) client.Patch {
	type status struct {
		Phase       corev1.PersistentVolumeClaimPhase          `json:"phase,omitempty"`
		AccessModes []corev1.PersistentVolumeAccessMode        `json:"accessModes,omitempty"`
		Capacity    map[corev1.ResourceName]*resource.Quantity `json:"capacity,omitempty"`
		// Class points to nil if the claim has no class any more.
		Class      **string `json:"currentVolumeAttributesClassName,omitempty"`
		Conditions []any    `json:"conditions"`
	}
	change := status{
		Capacity:   Changes(before.Capacity, after.Status.Capacity, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
		Conditions: ownConditions(before, after),
	}
	if before.Phase != after.Status.Phase {
		change.Phase = after.Status.Phase
	}
	if !slices.Equal(before.AccessModes, after.Status.AccessModes) {
		change.AccessModes = after.Status.AccessModes
	}
	if !ptr.Equal(before.CurrentVolumeAttributesClassName, after.Status.CurrentVolumeAttributesClassName) {
		change.Class = &after.Status.CurrentVolumeAttributesClassName
	}
	return Written{types.StrategicMergePatchType, struct {
		Metadata Identity `json:"metadata"`
		Status   status   `json:"status"`
	}{Identity{after.UID}, change}}
}

// Identity fences a status write that does not depend on the object's version. It must not
// reach the next object of the same name.
type Identity struct {
	UID types.UID `json:"uid"`
}

// PodCondition sets one condition of a pod. Other writers' conditions stay. A later pod of that name refuses it as invalid.
func PodCondition(pod *corev1.Pod, condition corev1.PodCondition) client.Patch {
	type status struct {
		Conditions []corev1.PodCondition `json:"conditions"`
	}
	return Written{types.StrategicMergePatchType, struct {
		Metadata Identity `json:"metadata"`
		Status   status   `json:"status"`
	}{Identity{pod.UID}, status{[]corev1.PodCondition{condition}}}}
}

// ClaimStatus is the patch from before to after, fenced by the UID of the claim.
func ClaimStatus(before *corev1.PersistentVolumeClaim, options ...client.MergeFromOption) client.Patch {
	withoutUID := before.DeepCopy()
	withoutUID.UID = ""
	return client.StrategicMergeFrom(withoutUID, options...)
}

// removed removes a condition in a strategic merge patch.
type removed struct {
	Type      corev1.PersistentVolumeClaimConditionType `json:"type"`
	Directive string                                    `json:"$patch"`
}

// ownConditions are the conditions that Stowage writes to a bound claim, and those that it removes.
func ownConditions(before corev1.PersistentVolumeClaimStatus, claim *corev1.PersistentVolumeClaim) []any {
	own := []any{}
	for _, condition := range claim.Status.Conditions {
		if condition.Type == stowagev1alpha1.BindableCondition || condition.Type == corev1.PersistentVolumeClaimUnused {
			own = append(own, condition)
		}
	}
	for _, record := range provisioned.RecordTypes {
		isRecord := func(of corev1.PersistentVolumeClaimCondition) bool { return of.Type == record }
		if slices.ContainsFunc(before.Conditions, isRecord) && !slices.ContainsFunc(claim.Status.Conditions, isRecord) {
			own = append(own, removed{record, "delete"})
		}
	}
	return own
}

// Changes returns the new values of keys that differ, and nil for removed keys.
func Changes[K comparable, V any](before, after map[K]V, equal func(a, b V) bool) map[K]*V {
	changed := map[K]*V{}
	for key, value := range after {
		if old, known := before[key]; !known || !equal(old, value) {
			changed[key] = &value
		}
	}
	for key := range before {
		if _, kept := after[key]; !kept {
			changed[key] = nil
		}
	}
	return changed
}
