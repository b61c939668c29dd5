package index

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
)

// HandleOf is the driver and handle of a volume with a csi source.
func HandleOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.CSI == nil {
		return nil
	}
	return []string{volume.Key(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)}
}

// ClaimRefOf is the namespace and name of the claim that a volume is tied to.
func ClaimRefOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.ClaimRef == nil {
		return nil
	}
	return []string{pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name}
}

// BackendOf is the name of the StorageBackend that a volume lies in.
func BackendOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.CSI == nil || pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute] == "" {
		return nil
	}
	return []string{pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute]}
}

// AttributesOf are the names of the VolumeAttributesClasses of a claim or a volume.
func AttributesOf(object client.Object) []string {
	switch typed := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return AttributesOfClaim(typed)
	case *corev1.PersistentVolume:
		return AttributesOfVolume(typed)
	default:
		return nil
	}
}

// AttributesOfClaim are the VolumeAttributesClasses that a claim asks for, has, or
// is being changed to.
func AttributesOfClaim(claim *corev1.PersistentVolumeClaim) []string {
	var names []string
	for _, name := range []*string{claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName} {
		if name != nil {
			names = append(names, *name)
		}
	}
	if modified := claim.Status.ModifyVolumeStatus; modified != nil {
		names = append(names, modified.TargetVolumeAttributesClassName)
	}
	return distinct(names)
}

// AttributesOfVolume is the VolumeAttributesClass that a volume has.
func AttributesOfVolume(pv *corev1.PersistentVolume) []string {
	if pv.Spec.VolumeAttributesClassName == nil {
		return nil
	}
	return distinct([]string{*pv.Spec.VolumeAttributesClassName})
}

// distinct sorts names and leaves out those that say nothing new, or nothing.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
