package status

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Claim is a claim, its volume, and where that is attached and mounted; or a volume that no
// claim has.
type Claim struct {
	// Name has the namespace. Empty: no claim has the volume.
	Name   string `json:"name,omitempty"`
	Phase  string `json:"phase"`
	Volume string `json:"volume,omitempty"`
	Size   string `json:"size,omitempty"`
	// RetainedUntil is the end of the undelete window, in RFC 3339, or "kept".
	RetainedUntil string `json:"retainedUntil,omitempty"`
	// Attached are the nodes of attachments: "node-1", or "node-1 (in progress)".
	Attached []string `json:"attached,omitempty"`
	// Pods use the claim: "db on node-1 (mounted)". Empty: no pod that hasn't ended does.
	Pods []string `json:"pods,omitempty"`
}

// claims are all claims, with what uses them, and after them the volumes that none of them has.
func claims(o *objects) []Claim {
	attached, users, taken := attachedTo(o.attachments), usersOf(o.pods), map[string]bool{}
	found := make([]Claim, 0, len(o.claims))
	for i := range o.claims {
		c := &o.claims[i]
		one := Claim{Name: c.Namespace + "/" + c.Name, Phase: string(c.Status.Phase), Volume: c.Spec.VolumeName}
		if size, is := c.Status.Capacity[corev1.ResourceStorage]; is {
			one.Size = facts.Bytes(&size)
		}
		one.Attached, one.Pods, taken[c.Spec.VolumeName] = attached[c.Spec.VolumeName], users[one.Name], true
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b Claim) int { return strings.Compare(a.Name, b.Name) })
	for i := range o.pvs {
		if pv := &o.pvs[i]; !taken[pv.Name] {
			found = append(found, Claim{
				Phase: string(pv.Status.Phase), Volume: pv.Name, Size: facts.Size(pv), Attached: attached[pv.Name], RetainedUntil: facts.Retained(pv).String(),
			})
		}
	}
	return found
}

// attachedTo has the nodes of each volume's attachments.
func attachedTo(attachments []storagev1.VolumeAttachment) map[string][]string {
	attached := map[string][]string{}
	for i := range attachments {
		a := &attachments[i]
		if a.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		node := a.Spec.NodeName
		if !a.Status.Attached || !a.DeletionTimestamp.IsZero() {
			node += " (in progress)"
		}
		attached[*a.Spec.Source.PersistentVolumeName] = append(attached[*a.Spec.Source.PersistentVolumeName], node)
	}
	return attached
}

// usersOf has the pods of each claim that haven't ended.
func usersOf(pods []corev1.Pod) map[string][]string {
	users := map[string][]string{}
	for i := range pods {
		pod := &pods[i]
		for v := range pod.Spec.Volumes {
			if name := volume.ClaimName(pod, &pod.Spec.Volumes[v]); name != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				users[pod.Namespace+"/"+name] = append(users[pod.Namespace+"/"+name], user(pod))
			}
		}
	}
	return users
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
