package node

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/wake"
)

// lookAtDrivers finds out whether Stowage attaches existing disks to the node. Without a
// backend that allows it, it reads nothing else.
func (r *Reconciler) lookAtDrivers(ctx context.Context, from nodeSource, seen *nodeView) error {
	if seen.Node == nil {
		return nil
	}
	backends := &stowagev1alpha1.StorageBackendList{}
	if err := r.client.List(ctx, backends, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the StorageBackends: %w", err)
	}
	if !slices.ContainsFunc(backends.Items, func(object stowagev1alpha1.StorageBackend) bool { return attachintent.AllowsInTreeDisks(&object) }) {
		return nil
	}
	drivers := &storagev1.CSINode{}
	found, err := find(ctx, from, client.ObjectKey{Name: seen.Name}, drivers)
	seen.existing = found && attach.AttachesInTreeDisks(seen.Node, drivers)
	return err
}

// newDrivers passes CSINodes that are created or deleted, or have changed drivers.
var newDrivers = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*storagev1.CSINode), e.ObjectNew.(*storagev1.CSINode)
	return before.Annotations[stowagev1alpha1.FollowsPodsAnnotation] != after.Annotations[stowagev1alpha1.FollowsPodsAnnotation] ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec)
}}

// newExisting passes backends that begin or stop to allow existing disks.
var newExisting = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return attachintent.AllowsInTreeDisks(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return attachintent.AllowsInTreeDisks(e.ObjectOld) != attachintent.AllowsInTreeDisks(e.ObjectNew)
	},
	DeleteFunc: func(e event.DeleteEvent) bool { return attachintent.AllowsInTreeDisks(e.Object) },
}

func nodeOfDrivers(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{wake.RequestNamed(object.GetName())}
}
