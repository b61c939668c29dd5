// Package changes has the predicates of changes that decide what is attached to a node.
package changes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/index"
)

// NodeState passes nodes that are created or deleted, and changes that decide what is
// attached to them. A resync passes, too.
var NodeState = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return before.ResourceVersion == after.ResourceVersion || attachintent.OnlyNewUse.Update(e) || !equality.Semantic.DeepEqual(attachSettings(before), attachSettings(after))
}}

// attachSettings are the annotations that decide which component attaches, and the kubelet's
// version, which is empty without a kubelet.
func attachSettings(node *corev1.Node) [3]string {
	return [3]string{node.Annotations[attach.ManagedAnnotation], node.Annotations[attach.KeepTerminatedAnnotation], node.Status.NodeInfo.KubeletVersion}
}

// Users passes pods that are created, deleted, scheduled or stopped. Other changes of their
// status do not change the desired volumes.
var Users = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	return before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName || attach.HasStopped(before) != attach.HasStopped(after)
}}

// Bindings passes claims that become bound or lose their volume.
var Bindings = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
	return before.UID != after.UID || before.Spec.VolumeName != after.Spec.VolumeName || before.Status.Phase != after.Status.Phase
}}

// ClaimRefs passes volumes that are created, deleted, or tied to another claim, or have
// other access modes.
var ClaimRefs = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.PersistentVolume), e.ObjectNew.(*corev1.PersistentVolume)
	return before.UID != after.UID || !slices.Equal(index.ClaimRefOf(before), index.ClaimRefOf(after)) ||
		!slices.Equal(before.Spec.AccessModes, after.Spec.AccessModes)
}}

// Needs passes drivers with a changed attachRequired.
var Needs = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return attach.Required(e.ObjectOld.(*storagev1.CSIDriver)) != attach.Required(e.ObjectNew.(*storagev1.CSIDriver))
}}

// Drivers passes CSINodes that are created or deleted, or have changed drivers.
var Drivers = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*storagev1.CSINode), e.ObjectNew.(*storagev1.CSINode)
	return before.Annotations[stowagev1alpha1.FollowsPodsAnnotation] != after.Annotations[stowagev1alpha1.FollowsPodsAnnotation] ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec)
}}

// InTreeDisks passes backends that begin or stop to allow in-tree disks.
var InTreeDisks = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return attachintent.AllowsInTreeDisks(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return attachintent.AllowsInTreeDisks(e.ObjectOld) != attachintent.AllowsInTreeDisks(e.ObjectNew)
	},
	DeleteFunc: func(e event.DeleteEvent) bool { return attachintent.AllowsInTreeDisks(e.Object) },
}
