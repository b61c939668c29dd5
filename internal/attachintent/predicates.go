package attachintent

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stowage-dev/stowage/internal/attach"
)

// OnlyNewUse lets pass nodes that come or go, and those of which something changed that
// decides whether a volume can be attached to or detached from them. A node tells every
// few seconds that nothing did.
var OnlyNewUse = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return before.UID != after.UID || before.Spec.ProviderID != after.Spec.ProviderID ||
		attach.ConditionOf(before) != attach.ConditionOf(after) ||
		!slices.Equal(before.Status.VolumesInUse, after.Status.VolumesInUse) ||
		!equality.Semantic.DeepEqual(before.Status.VolumesAttached, after.Status.VolumesAttached)
}}
