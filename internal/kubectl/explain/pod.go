package explain

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

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
	links := []Link{podLink(f, name)}
	if len(f.volumes) == 0 {
		links = append(links, Link{Depth: 1, Kind: "Volumes", State: OK, Says: "the pod uses no claim"})
	}
	for i := range f.volumes {
		links = append(links, below(1, ofClaim(&f.volumes[i], namespace))...)
	}
	return links
}

// podLink judges the pod itself. It only waits: the cause lies below.
func podLink(f *podFacts, name string) Link {
	pod := &f.pod.object
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
		link.State = Waiting
		link.Says, link.Do = noNode(f.volumes)
	case mounted != nil && mounted.Status == corev1.ConditionTrue:
		link.Says += ", volumes mounted"
	case mounted != nil:
		link.State, link.Says = Waiting, fmt.Sprintf("volumes aren't mounted on node %s: %s: %s", pod.Spec.NodeName, mounted.Reason, mounted.Message)
	default:
		why := facts.Newest(f.events, true, facts.MountEvents...)
		link.State, link.Says = Waiting, fmt.Sprintf("starts on node %s: %s", pod.Spec.NodeName, cmp.Or(why, "no event reports a problem with its volumes"))
	}
	return link
}

// noNode is why a pod has no node, and what to do. A scheduler that chose a node for a claim gives the pod
// that node once the volume is there. The annotation stays, so it says nothing of a claim that is bound.
func noNode(volumes []stored) (says, do string) {
	for i := range volumes {
		claim := &volumes[i].claim.object
		if node := claim.Annotations[volume.AnnSelectedNode]; node != "" && claim.Status.Phase == corev1.ClaimPending {
			return fmt.Sprintf("waits for the scheduler, which chose node %s for its claim %s", node, claim.Name),
				"wait: the pod gets that node once its volumes are there"
		}
	}
	return "has no node, and no scheduler reported why",
		"if that lasts, check that kube-scheduler runs; where there is none, as with make run, create the pod with spec.nodeName"
}

// below moves links deeper.
func below(depth int, links []Link) []Link {
	for i := range links {
		links[i].Depth += depth
	}
	return links
}
