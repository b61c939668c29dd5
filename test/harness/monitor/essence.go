package monitor

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// essence is what of an object is to stay.
func (m *Monitor) essence(object client.Object) client.Object {
	object = object.DeepCopyObject().(client.Object)
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	switch object := object.(type) {
	case *corev1.PersistentVolumeClaim:
		object.Status.Conditions = conditions(object)
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID},
			Status:     corev1.NodeStatus{VolumesAttached: m.toldBefore(object)},
		}
	}
	return object
}

// conditions are those that are to stay. Whether a claim is unused, and since when, stays
// whoever says it, in what words ever.
func conditions(claim *corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaimCondition {
	var kept []corev1.PersistentVolumeClaimCondition
	for _, condition := range claim.Status.Conditions {
		switch condition.Type {
		case stowagev1alpha1.BindableCondition:
		case "Unused":
			kept = append(kept, corev1.PersistentVolumeClaimCondition{
				Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime,
			})
		default:
			kept = append(kept, condition)
		}
	}
	return kept
}

// toldBefore are those of the volumes that a node is told of that it was told of from
// the beginning, in an order that says nothing.
func (m *Monitor) toldBefore(node *corev1.Node) []corev1.AttachedVolume {
	var kept []corev1.AttachedVolume
	for _, told := range m.before[node.UID].(*corev1.Node).Status.VolumesAttached {
		if slices.ContainsFunc(node.Status.VolumesAttached, func(now corev1.AttachedVolume) bool { return now.Name == told.Name }) {
			kept = append(kept, told)
		}
	}
	return kept
}
