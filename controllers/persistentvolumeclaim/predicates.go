package persistentvolumeclaim

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// onlyUsableBackends also passes backends that become Ready: claims that failed meanwhile must
// not wait for their next retry.
func onlyUsableBackends() builder.WatchesOption {
	return builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return !isUsable(e.ObjectOld) && isUsable(e.ObjectNew) },
	}))
}

func isUsable(object client.Object) bool {
	return meta.IsStatusConditionTrue(object.(*stowagev1alpha1.StorageBackend).Status.Conditions, stowagev1alpha1.ReadyCondition)
}

// onlyNewNodes passes nodes that are created or have changed labels: their heartbeats help no
// claim.
func onlyNewNodes() builder.WatchesOption {
	return builder.WithPredicates(predicate.LabelChangedPredicate{}, predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	})
}
