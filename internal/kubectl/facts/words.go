package facts

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Bytes is a quantity in the largest binary unit that keeps three digits, such as 66.8Gi; ""
// for nil.
func Bytes(quantity *resource.Quantity) string {
	if quantity == nil {
		return ""
	}
	value, units := float64(quantity.Value()), []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	unit := 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if value == float64(int64(value)) {
		return fmt.Sprintf("%d%s", int64(value), units[unit])
	}
	return fmt.Sprintf("%.1f%s", value, units[unit])
}

// Age is the time since a moment, as kubectl prints it; "" for none.
func Age(since metav1.Time, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(since.Time)))
}

// Condition is the status of a condition, with its reason and message if it isn't True:
// Unknown if there is none.
func Condition(conditions []metav1.Condition, name string) (status metav1.ConditionStatus, why string) {
	c := meta.FindStatusCondition(conditions, name)
	switch {
	case c == nil:
		return metav1.ConditionUnknown, "no component reported the condition " + name + " yet"
	case c.Status == metav1.ConditionTrue:
		return c.Status, ""
	default:
		return c.Status, c.Reason + ": " + c.Message
	}
}

// NodeReady reports whether a node is Ready, and why not.
func NodeReady(node *corev1.Node) (ready bool, why string) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, c.Reason + ": " + c.Message
		}
	}
	return false, "the node reported no condition Ready"
}

// PodCondition returns a condition of a pod, or nil.
func PodCondition(pod *corev1.Pod, name corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == name {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// ClaimCondition returns a condition of a claim, or nil.
func ClaimCondition(claim *corev1.PersistentVolumeClaim, name corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	for i := range claim.Status.Conditions {
		if claim.Status.Conditions[i].Type == name {
			return &claim.Status.Conditions[i]
		}
	}
	return nil
}
