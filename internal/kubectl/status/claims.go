package status

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Claim is a claim, its volume, and where that is attached and mounted.
type Claim struct {
	Name   string `json:"name"`
	Phase  string `json:"phase"`
	Volume string `json:"volume,omitempty"`
	Size   string `json:"size,omitempty"`
	// Attached are the nodes of attachments: "node-1", or "node-1 (in progress)".
	Attached []string `json:"attached,omitempty"`
	// Pods use the claim: "db on node-1 (mounted)". Empty: no pod that hasn't ended does.
	Pods []string `json:"pods,omitempty"`
}

// claims are all claims, with what uses them.
func claims(o *objects) []Claim {
	attached, users := map[string][]string{}, map[string][]string{}
	for i := range o.attachments {
		a := &o.attachments[i]
		if a.Spec.Source.PersistentVolumeName != nil {
			node := a.Spec.NodeName
			if !a.Status.Attached || !a.DeletionTimestamp.IsZero() {
				node += " (in progress)"
			}
			attached[*a.Spec.Source.PersistentVolumeName] = append(attached[*a.Spec.Source.PersistentVolumeName], node)
		}
	}
	for i := range o.pods {
		pod := &o.pods[i]
		for v := range pod.Spec.Volumes {
			if name := volume.ClaimName(pod, &pod.Spec.Volumes[v]); name != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				users[pod.Namespace+"/"+name] = append(users[pod.Namespace+"/"+name], user(pod))
			}
		}
	}
	found := make([]Claim, 0, len(o.claims))
	for i := range o.claims {
		c := &o.claims[i]
		one := Claim{Name: c.Namespace + "/" + c.Name, Phase: string(c.Status.Phase), Volume: c.Spec.VolumeName}
		if size, is := c.Status.Capacity[corev1.ResourceStorage]; is {
			one.Size = facts.Bytes(&size)
		}
		one.Attached, one.Pods = attached[c.Spec.VolumeName], users[one.Name]
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b Claim) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// user is a pod, its node, and whether its volumes are mounted.
func user(pod *corev1.Pod) string {
	c := facts.PodCondition(pod, stowagev1alpha1.VolumesReadyCondition)
	switch {
	case pod.Spec.NodeName == "":
		return pod.Name + " (no node yet)"
	case !pod.DeletionTimestamp.IsZero():
		return pod.Name + " on " + pod.Spec.NodeName + " (being deleted)"
	case pod.Status.Phase == corev1.PodRunning || c != nil && c.Status == corev1.ConditionTrue:
		return pod.Name + " on " + pod.Spec.NodeName + " (mounted)"
	default:
		return pod.Name + " on " + pod.Spec.NodeName + " (not mounted yet)"
	}
}
