package persistentvolumeclaim

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/modification"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
)

// onlyUsableBackends passes new backends and specs, and backends that become Ready: claims that
// failed before must not wait for their next retry.
func onlyUsableBackends() builder.WatchesOption {
	return builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return !isUsable(e.ObjectOld) && isUsable(e.ObjectNew) },
	}), wake.NotAtStart)
}

// newClasses passes classes that changed in more than their finalizers. The reconciler adds one as it
// provisions the first claim. It would put all other claims of the class before those of other classes.
var newClasses = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(withoutFinalizers(e.ObjectOld), withoutFinalizers(e.ObjectNew))
	},
}

func withoutFinalizers(object client.Object) *storagev1.StorageClass {
	class := object.DeepCopyObject().(*storagev1.StorageClass)
	class.ObjectMeta = wake.WithoutVersion(class.ObjectMeta)
	class.Finalizers = nil
	return class
}

func isUsable(object client.Object) bool {
	return meta.IsStatusConditionTrue(object.(*stowagev1alpha1.StorageBackend).Status.Conditions, stowagev1alpha1.ReadyCondition)
}

// onlyNewNodes passes nodes that are created or have changed labels: their heartbeats help no
// claim.
func onlyNewNodes() builder.WatchesOption {
	return builder.WithPredicates(predicate.LabelChangedPredicate{}, wake.NotAtStart, predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	})
}

// saysMore reports whether a claim changed in more than its conditions. If its own conditions
// woke it, its reconciler would call a failing backend again and again, without backoff. A
// resync, in which nothing differs, passes, and so does the removal of the condition.
func saysMore(before, after *corev1.PersistentVolumeClaim) bool {
	return before.ResourceVersion == after.ResourceVersion || bindable.Reason(after) == "" && !onlyModifying(before, after) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!equality.Semantic.DeepEqual(withoutConditions(before.Status), withoutConditions(after.Status)) ||
		!equality.Semantic.DeepEqual(wake.WithoutVersion(before.ObjectMeta), wake.WithoutVersion(after.ObjectMeta))
}

// goesOn reports whether a claim is new, or changed since a manager said what it waits for. After
// another manager died, such claims come before the thousands that waited already, and the bound.
func goesOn(claim *corev1.PersistentVolumeClaim) bool {
	switch bindable.Reason(claim) {
	case "", bindable.ReasonBound:
		return claim.Status.Phase != corev1.ClaimBound && claim.Status.Phase != corev1.ClaimLost
	case bindable.ReasonWaitForFirstConsumer, bindable.ReasonWaitForPodScheduled:
		return claim.Annotations[step.AnnSelectedNode] != ""
	default:
		return provisioned.HasIntent(claim) || binder.Completed(claim) && claim.Status.Phase == corev1.ClaimPending
	}
}

// begins reports whether a claim changed only because provisioning began: the reconcile that
// wrote this continues without an event.
func begins(before, after *corev1.PersistentVolumeClaim) bool {
	return !provisioned.HasIntent(before) && provisioned.HasIntent(after) && after.DeletionTimestamp.IsZero() &&
		equality.Semantic.DeepEqual(before.Spec, after.Spec) && equality.Semantic.DeepEqual(before.Status, after.Status) &&
		equality.Semantic.DeepEqual(withoutIntent(before), withoutIntent(after))
}

// withoutIntent returns a claim's metadata without what is written when provisioning begins.
func withoutIntent(claim *corev1.PersistentVolumeClaim) metav1.ObjectMeta {
	stripped := claim.DeepCopy()
	provisioned.ClearIntent(stripped)
	controllerutil.RemoveFinalizer(stripped, uses.ClaimProtection)
	delete(stripped.Annotations, volume.AnnStorageProvisioner)
	delete(stripped.Annotations, volume.AnnBetaStorageProvisioner)
	return wake.WithoutVersion(stripped.ObjectMeta)
}

// onlyModifying reports whether only the conditions about a change of attributes differ. Each retry
// writes them, also in scope=classes, where claims have no condition Bindable.
func onlyModifying(before, after *corev1.PersistentVolumeClaim) bool {
	stripped := [2]*corev1.PersistentVolumeClaim{before.DeepCopy(), after.DeepCopy()}
	for _, claim := range stripped {
		bindable.RemoveConditions(claim, modification.Conditions...)
		claim.ObjectMeta = wake.WithoutVersion(claim.ObjectMeta)
	}
	return equality.Semantic.DeepEqual(stripped[0], stripped[1])
}

func withoutConditions(status corev1.PersistentVolumeClaimStatus) corev1.PersistentVolumeClaimStatus {
	status.Conditions = nil
	return status
}
