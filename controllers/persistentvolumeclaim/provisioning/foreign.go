package provisioning

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/migration"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// NoProvisioner is the provisioner of classes with handmade volumes.
const NoProvisioner = "kubernetes.io/no-provisioner"

// populated reports whether a claim's data comes from a populator. That is a program that
// knows the kind of the claim's data source, fills a volume, and ties it to the claim.
func populated(claim *corev1.PersistentVolumeClaim) bool {
	source := provisioned.DataSource(claim)
	return source != nil && !provisioned.IsClaim(source) && !provisioned.IsSnapshot(source)
}

func waitForPopulator(claim *corev1.PersistentVolumeClaim) *step.Wait {
	source := provisioned.DataSource(claim)
	return &step.Wait{
		Reason: bindable.ReasonWaitForPopulator, Event: event.Provisioning,
		Message: fmt.Sprintf("assuming that an external populator will provision the volume from %s %s", source.Kind, source.Name),
	}
}

func waitForForeignProvisioner(driver string) *step.Wait {
	return &step.Wait{
		Reason: bindable.ReasonExternalProvisioning, Event: event.ExternalProvisioning,
		Message: fmt.Sprintf("waiting for a volume to be created by the external provisioner %q", driver),
	}
}

// waitForGoneProvisioner means that no program provisions volumes of a class. A new volume of
// the class wakes the claim.
func waitForGoneProvisioner(class *storagev1.StorageClass) *step.Wait {
	return &step.Wait{
		Reason: bindable.ReasonProvisioningFailed, Event: event.ProvisioningFailed, Warning: true,
		Message: fmt.Sprintf("StorageClass %q has the provisioner %s, which is not part of Kubernetes, and which no CSI driver took over: "+
			"create the claim with another class, or create a volume that fits", class.Name, class.Provisioner),
	}
}

// provisionerOf returns the provisioner of a class: the CSI driver that took over an in-tree
// one, or the one that the class names.
func provisionerOf(class *storagev1.StorageClass) string {
	return cmp.Or(migration.DriverOf(class.Provisioner), class.Provisioner)
}

// isGone reports whether the provisioner of a class was in-tree, and no CSI driver took it
// over.
func isGone(class *storagev1.StorageClass) bool {
	return migration.IsInTree(class.Provisioner) && migration.DriverOf(class.Provisioner) == ""
}

// markProvisioner requests the claim's volume from a foreign provisioner.
func (r *Provisioner) markProvisioner(ctx context.Context, scope *step.Scope) error {
	before := scope.Claim.DeepCopy()
	if !setProvisioner(scope.Claim, scope.Class) {
		return nil
	}
	err := r.client.Patch(ctx, scope.Claim, patch.Fenced(before))
	return wrap.Error(err, "naming the provisioner of claim %s/%s", scope.Claim.Namespace, scope.Claim.Name)
}

// setProvisioner sets, in memory, the annotations that name the provisioner, the older one for
// programs that read only that, and reports whether they changed. If the newer one is right,
// both were written before, or a person chose to omit the older one.
func setProvisioner(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	provisioner := provisionerOf(class)
	if claim.Annotations[volume.AnnStorageProvisioner] == provisioner {
		return false
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnStorageProvisioner, provisioner)
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBetaStorageProvisioner, provisioner)
	migration.MarkClaim(claim)
	return true
}
