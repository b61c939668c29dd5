package attachintent

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stowage-dev/stowage/internal/attach"
)

// OnlyNewUse passes nodes that are created or deleted, and changes that decide whether a
// volume can be attached or detached. The node's status is also updated every few seconds
// without such a change.
var OnlyNewUse = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return before.UID != after.UID || before.Spec.ProviderID != after.Spec.ProviderID ||
		attach.ConditionOf(before) != attach.ConditionOf(after) ||
		!slices.Equal(before.Status.VolumesInUse, after.Status.VolumesInUse) ||
		!equality.Semantic.DeepEqual(before.Status.VolumesAttached, after.Status.VolumesAttached)
}}
