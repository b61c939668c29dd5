// Package room answers how much space a NodeDisk has for volumes, and which changes of a disk
// add space.
package room

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// OnlyMore passes disks that become Ready, and those with more space than before.
func OnlyMore() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, now := e.ObjectOld.(*stowagev1alpha1.NodeDisk), e.ObjectNew.(*stowagev1alpha1.NodeDisk)
			had, has := Of(before), Of(now)
			return IsReady(now) && (!IsReady(before) || has.Cmp(had) > 0)
		},
	})
}

// Of returns the space that volumes can reserve on a disk now.
func Of(disk *stowagev1alpha1.NodeDisk) resource.Quantity {
	if !IsReady(disk) || disk.Status.Available == nil {
		return *resource.NewQuantity(0, resource.BinarySI)
	}
	return *disk.Status.Available
}

// IsReady reports whether the node agent reports the disk as usable.
func IsReady(disk *stowagev1alpha1.NodeDisk) bool {
	return meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition)
}
