package csiclass

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	// identityAttribute of a volume identifies the installation that provisioned it.
	identityAttribute = "storage.kubernetes.io/csiProvisionerIdentity"
	// annDeletionSecretName and annDeletionSecretNamespace of a volume name the Secret for its
	// deletion.
	annDeletionSecretName      = "volume.kubernetes.io/provisioner-deletion-secret-name"
	annDeletionSecretNamespace = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
	// annModifySecretName and annModifySecretNamespace name the Secret for external-resizer's changes
	// of its attributes.
	annModifySecretName      = "volume.kubernetes.io/controller-modify-secret-name"
	annModifySecretNamespace = "volume.kubernetes.io/controller-modify-secret-namespace"
)

// AsExternalProvisioner makes a PersistentVolume of a CSI driver what external-provisioner would
// have created: the driver's nodes, and other programs, read it. The volume context is the
// driver's alone, so no attribute names the StorageBackend. The namespace is that of the Secrets.
func AsExternalProvisioner(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend, made *backend.Volume, namespace string) {
	source := pv.Spec.CSI
	source.VolumeAttributes = maps.Clone(made.Attributes)
	if source.VolumeAttributes == nil {
		source.VolumeAttributes = map[string]string{}
	}
	source.VolumeAttributes[identityAttribute] = string(object.UID) + "-" + source.Driver
	// Where the driver names no topology, each node can use the volume, whatever the class allows.
	pv.Spec.NodeAffinity = made.NodeAffinity
	secrets := object.Spec.CSI.Secrets
	for _, each := range []struct {
		from *stowagev1alpha1.SecretReference
		to   **corev1.SecretReference
	}{
		{secrets.ControllerPublish, &source.ControllerPublishSecretRef},
		{secrets.ControllerExpand, &source.ControllerExpandSecretRef},
		{secrets.NodeStage, &source.NodeStageSecretRef},
		{secrets.NodePublish, &source.NodePublishSecretRef},
		{secrets.NodeExpand, &source.NodeExpandSecretRef},
	} {
		if each.from != nil {
			*each.to = &corev1.SecretReference{Name: each.from.Name, Namespace: namespace}
		}
	}
	if secrets.Provision != nil {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, annDeletionSecretName, secrets.Provision.Name)
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, annDeletionSecretNamespace, namespace)
	}
	if secrets.ControllerModify != nil {
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, annModifySecretName, secrets.ControllerModify.Name)
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, annModifySecretNamespace, namespace)
	}
}
