package controllers

import (
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// onlyMoreRoom lets pass disks that turn Ready, and those with more room than before.
func onlyMoreRoom() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, now := e.ObjectOld.(*stowagev1alpha1.LocalDisk), e.ObjectNew.(*stowagev1alpha1.LocalDisk)
			had, has := roomOf(before), roomOf(now)
			return isReady(now) && (!isReady(before) || has.Cmp(had) > 0)
		},
	})
}

// roomOf is what may be given of a disk to volumes now.
func roomOf(disk *stowagev1alpha1.LocalDisk) resource.Quantity {
	if !isReady(disk) || disk.Status.Available == nil {
		return *resource.NewQuantity(0, resource.BinarySI)
	}
	return *disk.Status.Available
}

func isReady(disk *stowagev1alpha1.LocalDisk) bool {
	return meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition)
}
