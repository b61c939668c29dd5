package wake

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// OnlyNewSpecs passes backends with a changed spec. A probe writes only their status, and that
// helps no claim.
func OnlyNewSpecs() builder.WatchesOption {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// OnlyNewBackends passes changes of a backend's spec. The reconciler writes the status itself
// and would wake itself.
func OnlyNewBackends() builder.ForOption {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// OnlyNodeLabels passes nodes that are created or deleted, or have changed labels.
func OnlyNodeLabels() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return predicate.LabelChangedPredicate{}.Update(e) },
	})
}

// WithoutVersion returns metadata without the fields that change with every write.
func WithoutVersion(metadata metav1.ObjectMeta) metav1.ObjectMeta {
	metadata.ResourceVersion, metadata.ManagedFields = "", nil
	return metadata
}

// NotAtStart drops the objects that are there when a watch begins. It is for a reconciler whose own objects
// all are reconciled then. Such an object would wake those that need it ahead of all others, and cost a list.
var NotAtStart = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
}

// OnlyDeletions passes deleted objects, such as attachments: another attachment may wait for the
// deletion.
var OnlyDeletions = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}
