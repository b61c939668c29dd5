// Package migration knows which CSI driver took over an in-tree volume type of Kubernetes.
// Like kube-controller-manager, Stowage hands such volumes to the sidecars of that driver.
//
// It is pure. The reconcilers of claims and volumes call it; it never writes.
package migration

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	csitranslation "k8s.io/csi-translation-lib"
)

// inTreePrefix begins the names of all provisioners that are, or were, in-tree.
const inTreePrefix = "kubernetes.io/"

// translator has only completely migrated types: no supported version of Kubernetes serves any
// of them itself.
var translator = csitranslation.New()

// IsInTree reports whether a provisioner is, or was, in-tree.
func IsInTree(provisioner string) bool { return strings.HasPrefix(provisioner, inTreePrefix) }

// DriverOf returns the CSI driver that took over an in-tree provisioner, or "".
func DriverOf(provisioner string) string {
	if !IsInTree(provisioner) {
		return ""
	}
	driver, err := translator.GetCSINameFromInTreeName(provisioner)
	if err != nil {
		// The only error: no driver took it over.
		return ""
	}
	return driver
}

// DriverOfVolume returns the CSI driver that took over the type of a volume, or "".
func DriverOfVolume(pv *corev1.PersistentVolume) string {
	provisioner, err := translator.GetInTreePluginNameFromSpec(pv, nil)
	if err != nil {
		// The only error: no driver took it over.
		return ""
	}
	return DriverOf(provisioner)
}

// MarkVolume sets or removes, in memory, the annotation that names the driver which took over
// the provisioner of a volume. It reports whether the annotation changed.
func MarkVolume(pv *corev1.PersistentVolume) bool {
	provisioner, provisioned := pv.Annotations[volume.AnnDynamicallyProvisioned]
	return provisioned && mark(&pv.ObjectMeta, provisioner)
}

// MarkClaim does the same for a claim, by the provisioner in its annotation, or in the older
// annotation.
func MarkClaim(claim *corev1.PersistentVolumeClaim) bool {
	provisioner, asked := claim.Annotations[volume.AnnStorageProvisioner]
	if !asked {
		provisioner, asked = claim.Annotations[volume.AnnBetaStorageProvisioner]
	}
	return asked && mark(&claim.ObjectMeta, provisioner)
}

func mark(object *metav1.ObjectMeta, provisioner string) bool {
	driver, marked := DriverOf(provisioner), object.Annotations[volume.AnnMigratedTo]
	switch driver {
	case marked:
		return false
	case "":
		delete(object.Annotations, volume.AnnMigratedTo)
	default:
		metav1.SetMetaDataAnnotation(object, volume.AnnMigratedTo, driver)
	}
	return true
}
