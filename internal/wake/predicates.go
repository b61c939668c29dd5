package wake

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// OnlyNewSpecs lets pass backends whose spec changes: what a probe writes into
// their status brings no claim further.
func OnlyNewSpecs() builder.WatchesOption {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// OnlyNewBackends lets pass what people change in a backend, and not the status
// that the reconciler writes itself.
func OnlyNewBackends() builder.ForOption {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// OnlyNodeLabels lets pass nodes that come, go or change their labels.
func OnlyNodeLabels() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return predicate.LabelChangedPredicate{}.Update(e) },
	})
}

// WithoutVersion is metadata without what every write changes.
func WithoutVersion(metadata metav1.ObjectMeta) metav1.ObjectMeta {
	metadata.ResourceVersion, metadata.ManagedFields = "", nil
	return metadata
}

// OnlyEnds lets pass attachments that are gone: another may have waited for that.
var OnlyEnds = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}
