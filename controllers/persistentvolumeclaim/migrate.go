package persistentvolumeclaim

import (
	"cmp"
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/migration"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// annResizer of a claim names the CSI driver whose external-resizer grows the volume of an
// in-tree type: of a csi source the resizer reads the driver.
const annResizer = "volume.kubernetes.io/storage-resizer"

// ensureMigrated marks a claim with the CSI driver that took over the in-tree provisioner
// which its annotation names: without the mark the sidecars of that driver leave it alone.
func (r *Reconciler) ensureMigrated(ctx context.Context, scope *ClaimScope) (*wait, error) {
	marked := *scope.Claim
	marked.Annotations = maps.Clone(marked.Annotations)
	if !migration.MarkClaim(&marked) {
		return nil, nil
	}
	return r.annotate(ctx, scope.Claim, marked.Annotations)
}

// annotate replaces the annotations of a claim. It returns a wait where the cache still
// shows a claim that is gone.
func (r *Reconciler) annotate(ctx context.Context, claim *corev1.PersistentVolumeClaim, annotations map[string]string) (*wait, error) {
	before := claim.DeepCopy()
	claim.Annotations = annotations
	err := r.client.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return &wait{}, nil
	}
	return nil, wrap.Error(err, "annotating claim %s/%s", claim.Namespace, claim.Name)
}

// provisionerOf is the provisioner that makes volumes of a class: the CSI driver that took
// over an in-tree one, or the one that the class names.
func provisionerOf(class *storagev1.StorageClass) string {
	return cmp.Or(migration.DriverOf(class.Provisioner), class.Provisioner)
}

// isGone reports whether the provisioner of a class was part of Kubernetes, and no CSI
// driver took it over.
func isGone(class *storagev1.StorageClass) bool {
	return migration.IsInTree(class.Provisioner) && migration.DriverOf(class.Provisioner) == ""
}

// leaveToExpander leaves a volume that Stowage does not serve to the resizer of its
// driver. In scope=classes kube-controller-manager does.
func (r *Reconciler) leaveToExpander(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (*wait, error) {
	if r.scope == reconciler.ClassesScope {
		return nil, nil
	}
	driver := migration.DriverOfVolume(pv)
	switch {
	case driver == "" && !expandedElsewhere(pv):
		return waitForNoExpander(claim, pv), nil
	case driver == "" || claim.Annotations[annResizer] == driver:
		return waitForForeignExpander(), nil
	}
	marked := *claim
	marked.Annotations = maps.Clone(claim.Annotations)
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, annResizer, driver)
	if gone, err := r.annotate(ctx, claim, marked.Annotations); gone != nil || err != nil {
		return gone, err
	}
	return waitForForeignExpander(), nil
}

// expandedElsewhere reports whether a volume may have a program that grows it: its CSI or
// FlexVolume driver, or a provisioner that made it.
func expandedElsewhere(pv *corev1.PersistentVolume) bool {
	provisioner := pv.Annotations[volume.AnnDynamicallyProvisioned]
	return pv.Spec.CSI != nil && !backend.IsOurs(pv.Spec.CSI.Driver) || pv.Spec.FlexVolume != nil ||
		provisioner != "" && !migration.IsInTree(provisioner) && !backend.IsOurs(provisioner)
}
