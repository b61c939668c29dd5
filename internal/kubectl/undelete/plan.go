// Package undelete is the verb undelete of kubectl stowage. It gives the data of a Released volume
// to a claim, within the undelete window, and then restores the volume's policy. It also creates a
// deleted VolumeSnapshot again, of the content that keeps its snapshot.
//
// cmd/kubectl-stowage calls it. It is the only verb that writes. It reserves the volume for one
// named claim and keeps its data in one fenced write, creates the claim, and waits until both are
// bound. It never clears claimRef alone, which would offer the data to every namespace. Each step
// first asks whether it is done, so the same command continues after an interruption.
package undelete

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	"github.com/stowage-dev/stowage/internal/volume"
)

// PolicyAnnotation of a volume that is being given back is its reclaim policy before. The
// write that restores the policy removes it.
const PolicyAnnotation = "stowage.dev/undelete-policy"

// target is the claim that gets the data: the one of --to, or the volume's former claim.
func target(pv *corev1.PersistentVolume, to *client.ObjectKey) (client.ObjectKey, error) {
	switch {
	case to != nil:
		return *to, nil
	case pv.Spec.ClaimRef == nil:
		return client.ObjectKey{}, fmt.Errorf("PersistentVolume %s names no claim: name one with --to NAMESPACE/NAME", pv.Name)
	default:
		return client.ObjectKey{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name}, nil
	}
}

// refuse returns why a volume can't be given back, and what to do; nil if it can. The end of the
// undelete window is no reason. A volume that isn't being deleted has its data, and the write is
// fenced against a deletion at the same time.
func refuse(pv *corev1.PersistentVolume) error {
	policy := pv.Spec.PersistentVolumeReclaimPolicy
	switch {
	case !pv.DeletionTimestamp.IsZero():
		return fmt.Errorf("PersistentVolume %[1]s is being deleted, which can't be undone: keep its data (kubectl patch pv %[1]s --type=merge "+
			`-p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'`+"), save the object (kubectl get pv %[1]s -o yaml), wait until it is gone, and create it again "+
			"without uid, with the claimRef of the new claim", pv.Name)
	case begun(pv):
		return nil
	case pv.Status.Phase == corev1.VolumeBound:
		return errHeld(pv, facts.Claim(pv))
	case pv.Status.Phase != corev1.VolumeReleased:
		return fmt.Errorf("PersistentVolume %s is %s: only the data of a Released volume, whose claim is gone, can be given back", pv.Name, cmp.Or(pv.Status.Phase, corev1.VolumePending))
	case policy == corev1.PersistentVolumeReclaimRecycle, policy == corev1.PersistentVolumeReclaimDelete && !facts.IsOurs(pv) && !volume.InUndeleteWindow(pv):
		return fmt.Errorf("PersistentVolume %s of driver %q has the policy %s, and its data may be gone already: set the policy to Retain, check the storage, and run the command again", pv.Name, facts.Driver(pv), policy)
	default:
		return nil
	}
}

// errHeld refuses a volume that a claim has. The policy Retain comes first: with the policy Delete, the
// data may go with the claim.
func errHeld(pv *corev1.PersistentVolume, claim string) error {
	return fmt.Errorf("PersistentVolume %[1]s belongs to claim %[2]s, which exists and has the data: nothing is to be given back. "+
		"Before that claim is deleted, so that another can have the data, keep it: kubectl patch pv %[1]s --type=merge "+
		`-p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'`, pv.Name, claim)
}

// begun reports whether an earlier run reserved the volume and didn't restore its policy.
func begun(pv *corev1.PersistentVolume) bool { return pv.Annotations[PolicyAnnotation] != "" }

// isReserved reports whether a volume is kept, and reserved for a claim or bound to it.
func isReserved(pv *corev1.PersistentVolume, key client.ObjectKey, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return begun(pv) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain &&
		ref != nil && ref.Namespace == key.Namespace && ref.Name == key.Name &&
		(ref.UID == "" || claim != nil && ref.UID == claim.UID)
}

// reserve is the write that keeps a volume's data and reserves it for a claim by name. The
// binder didn't choose that: without bound-by-controller it never clears the claimRef itself.
func reserve(pv *corev1.PersistentVolume, key client.ObjectKey) map[string]any {
	policy := cmp.Or(pv.Annotations[PolicyAnnotation], string(pv.Spec.PersistentVolumeReclaimPolicy))
	return map[string]any{
		"metadata": map[string]any{
			"uid": pv.UID, "resourceVersion": pv.ResourceVersion,
			"annotations": map[string]any{PolicyAnnotation: policy, "pv.kubernetes.io/bound-by-controller": nil},
		},
		"spec": map[string]any{
			"persistentVolumeReclaimPolicy": corev1.PersistentVolumeReclaimRetain,
			"claimRef": map[string]any{
				"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": key.Namespace, "name": key.Name,
				"uid": nil, "resourceVersion": nil,
			},
		},
	}
}

// restore is the write that gives a bound volume its policy back.
func restore(pv *corev1.PersistentVolume) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"uid": pv.UID, "resourceVersion": pv.ResourceVersion, "annotations": map[string]any{PolicyAnnotation: nil}},
		"spec":     map[string]any{"persistentVolumeReclaimPolicy": formerPolicy(pv)},
	}
}

// formerPolicy is the policy before undelete. Users can write annotations: what is no policy
// means Retain, which loses nothing.
func formerPolicy(pv *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	switch policy := corev1.PersistentVolumeReclaimPolicy(pv.Annotations[PolicyAnnotation]); policy {
	case corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle:
		return policy
	default:
		return corev1.PersistentVolumeReclaimRetain
	}
}

// claimFor is the claim that asks for exactly this volume.
func claimFor(pv *corev1.PersistentVolume, key client.ObjectKey) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: pv.Spec.AccessModes, VolumeMode: pv.Spec.VolumeMode, VolumeName: pv.Name,
			StorageClassName: ptr.To(pv.Spec.StorageClassName), VolumeAttributesClassName: pv.Spec.VolumeAttributesClassName,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: pv.Spec.Capacity[corev1.ResourceStorage]}},
		},
	}
}

// isBound reports whether claim and volume are bound to each other.
func isBound(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName == pv.Name &&
		pv.Status.Phase == corev1.VolumeBound && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID
}
