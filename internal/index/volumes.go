package index

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// HandleOf returns the driver and handle of a CSI volume.
func HandleOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.CSI == nil {
		return nil
	}
	return []string{volume.Key(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)}
}

// ClaimRefOf returns the namespace and name in a volume's claimRef.
func ClaimRefOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.ClaimRef == nil {
		return nil
	}
	return []string{pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name}
}

// BackendOf returns the name of a volume's StorageBackend. That of a driver that isn't one of
// Stowage's has the driver's name, and exists only if it is served.
func BackendOf(pv *corev1.PersistentVolume) []string {
	switch {
	case pv.Spec.CSI == nil:
		return nil
	case !backend.IsOurs(pv.Spec.CSI.Driver):
		return []string{pv.Spec.CSI.Driver}
	case pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute] == "":
		return nil
	}
	return []string{pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute]}
}

// AttributesOf returns the names of the VolumeAttributesClasses of a claim or a volume.
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

// AttributesOfClaim returns the VolumeAttributesClasses that a claim requests, has, or is
// changing to.
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

// AttributesOfVolume returns the VolumeAttributesClass of a volume.
func AttributesOfVolume(pv *corev1.PersistentVolume) []string {
	if pv.Spec.VolumeAttributesClassName == nil {
		return nil
	}
	return distinct([]string{*pv.Spec.VolumeAttributesClassName})
}

// distinct sorts names and drops duplicates and empty names.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
