package explain

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// ofPod is the chain of a pod: the pod, and below it each of its claims.
func ofPod(f *podFacts, namespace string) []Link {
	name := namespace + "/" + f.pod.name
	if f.pod.presence == cluster.Unreadable {
		return []Link{unreadable("Pod", name)}
	}
	links := []Link{podLink(&f.pod.object, f.events, name)}
	if len(f.volumes) == 0 {
		links = append(links, Link{Depth: 1, Kind: "Volumes", State: OK, Says: "the pod uses no claim"})
	}
	for i := range f.volumes {
		links = append(links, below(1, ofClaim(&f.volumes[i], namespace))...)
	}
	return links
}

// podLink judges the pod itself. It only waits: the cause lies below.
func podLink(pod *corev1.Pod, events []corev1.Event, name string) Link {
	link := Link{Kind: "Pod", Name: name, State: OK, Says: string(pod.Status.Phase)}
	if pod.Spec.NodeName != "" {
		link.Says += " on node " + pod.Spec.NodeName
	}
	scheduled, mounted := facts.PodCondition(pod, corev1.PodScheduled), facts.PodCondition(pod, stowagev1alpha1.VolumesReadyCondition)
	switch {
	case !pod.DeletionTimestamp.IsZero():
		link.State, link.Says = Waiting, "is being deleted; its volumes are unmounted once its containers have stopped"
	case pod.Status.Phase != corev1.PodPending:
	case scheduled != nil && scheduled.Status == corev1.ConditionFalse:
		link.State, link.Says = Waiting, "has no node: "+scheduled.Reason+": "+scheduled.Message
		if strings.Contains(scheduled.Message, "free storage") {
			link.Do = "compare what its claims request with the room of each node: kubectl stowage status"
		}
	case pod.Spec.NodeName == "":
		link.State, link.Says = Waiting, "has no node, and no scheduler reported why"
		link.Do = "check that kube-scheduler runs; where there is none, as with make run, create the pod with spec.nodeName"
	case mounted != nil && mounted.Status == corev1.ConditionTrue:
		link.Says += ", volumes mounted"
	case mounted != nil:
		link.State, link.Says = Waiting, fmt.Sprintf("volumes aren't mounted on node %s: %s: %s", pod.Spec.NodeName, mounted.Reason, mounted.Message)
	default:
		why := facts.Newest(events, true, facts.MountEvents...)
		link.State, link.Says = Waiting, fmt.Sprintf("starts on node %s: %s", pod.Spec.NodeName, cmp.Or(why, "no event reports a problem with its volumes"))
	}
	return link
}

// below moves links deeper.
func below(depth int, links []Link) []Link {
	for i := range links {
		links[i].Depth += depth
	}
	return links
}
