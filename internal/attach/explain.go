package attach

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Explain returns why a pod's volume is not attached yet, for the pod's user. Blockers are the
// pods that use the volume on the nodes that have it. Of those in other namespaces the text
// has only the number: their names are not this user's to see.
func Explain(step Step, pod *corev1.Pod, blockers []corev1.Pod) string {
	switch step.Cause {
	case NodeOff:
		return fmt.Sprintf("volume %s is not attached to node %s, which has the taint %s: remove the taint once the node is back, or delete this pod",
			step.Volume, pod.Spec.NodeName, corev1.TaintNodeOutOfService)
	case AttachedElsewhere:
		return fmt.Sprintf("Multi-Attach error for volume %q: it can be on one node at a time, and %s %s",
			step.Volume, nodesOf(step.OtherNodes), adviceOn(pod, blockers))
	default:
		return ""
	}
}

func nodesOf(others []OtherNode) string {
	var nodes []string
	for _, other := range others {
		nodes = append(nodes, other.Node)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(nodes) == 1 {
		return "node " + nodes[0] + " has it"
	}
	return "nodes " + strings.Join(nodes, ", ") + " have it"
}

func adviceOn(pod *corev1.Pod, blockers []corev1.Pod) string {
	var names []string
	others := 0
	for i := range blockers {
		if blockers[i].Namespace == pod.Namespace {
			names = append(names, blockers[i].Name)
		} else {
			others++
		}
	}
	slices.Sort(names)
	if others > 0 {
		names = append(names, fmt.Sprintf("%d in other namespaces", others))
	}
	if len(names) == 0 {
		return "until it has unmounted it: this pod waits for that. If that node is off for certain, give it the taint " +
			corev1.TaintNodeOutOfService
	}
	return "for these pods: " + strings.Join(names, ", ") + ". This pod waits until they have ended"
}
