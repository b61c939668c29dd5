package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// onlyNewSpecs lets pass backends whose spec changes: what a probe writes into
// their status brings no claim further.
func onlyNewSpecs() builder.WatchesOption {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// onlyNewBackends lets pass what people change in a backend, and not the status
// that the reconciler writes itself.
func onlyNewBackends() builder.ForOption {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// onlyNodeLabels lets pass nodes that come, go or change their labels.
func onlyNodeLabels() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return predicate.LabelChangedPredicate{}.Update(e) },
	})
}

func withoutVersion(metadata metav1.ObjectMeta) metav1.ObjectMeta {
	metadata.ResourceVersion, metadata.ManagedFields = "", nil
	return metadata
}

// onlyEnds lets pass attachments that are gone: another may have waited for that.
var onlyEnds = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}
