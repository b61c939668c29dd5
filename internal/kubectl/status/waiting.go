package status

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// Waiting is an object that waits, and why.
type Waiting struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// For is how long, as kubectl prints ages.
	For string `json:"for"`
	Why string `json:"why"`

	since metav1.Time
}

// waiting are the objects that wait, the longest first.
func waiting(o *objects, now time.Time) []Waiting {
	found := slices.Concat(waitingClaims(o), waitingVolumes(o.pvs), waitingAttachments(o), waitingPods(o))
	slices.SortStableFunc(found, func(a, b Waiting) int { return a.since.Compare(b.since.Time) })
	for i := range found {
		found[i].For = facts.Age(found[i].since, now)
	}
	if found == nil {
		return []Waiting{}
	}
	return found
}

func waitingClaims(o *objects) (found []Waiting) {
	for i := range o.claims {
		claim := &o.claims[i]
		w := Waiting{Kind: "claim", Name: claim.Namespace + "/" + claim.Name, since: claim.CreationTimestamp}
		c := facts.ClaimCondition(claim, stowagev1alpha1.BindableCondition)
		switch {
		case !claim.DeletionTimestamp.IsZero():
			w.since, w.Why = *claim.DeletionTimestamp, "is being deleted"
		case claim.Status.Phase == corev1.ClaimLost:
			w.Why = "is Lost: volume " + claim.Spec.VolumeName + " is gone"
		case claim.Status.Phase == corev1.ClaimBound:
			continue
		case c != nil && c.Status == corev1.ConditionFalse:
			w.Why = c.Reason + ": " + c.Message
		default:
			events := o.events[claim.UID]
			w.Why = cmp.Or(facts.Newest(events, true), facts.Newest(events, false), "is Pending: kubectl stowage explain pvc "+claim.Name+" -n "+claim.Namespace)
		}
		found = append(found, w)
	}
	return found
}

// waitingVolumes are those that can't be used, but for those whose data is only kept.
func waitingVolumes(pvs []corev1.PersistentVolume) (found []Waiting) {
	for i := range pvs {
		pv := &pvs[i]
		w := Waiting{Kind: "volume", Name: pv.Name, since: pv.CreationTimestamp}
		switch {
		case pv.Status.Phase == corev1.VolumeFailed:
			w.Why = cmp.Or(pv.Status.Message, "is Failed")
		case !pv.DeletionTimestamp.IsZero():
			w.since, w.Why = *pv.DeletionTimestamp, "is being deleted: kubectl stowage explain pv "+pv.Name
		default:
			continue
		}
		found = append(found, w)
	}
	return found
}

func waitingAttachments(o *objects) (found []Waiting) {
	for i := range o.attachments {
		a := &o.attachments[i]
		volume := "an inline volume"
		if a.Spec.Source.PersistentVolumeName != nil {
			volume = *a.Spec.Source.PersistentVolumeName
		}
		w := Waiting{Kind: "attachment", Name: volume + " on " + a.Spec.NodeName, since: a.CreationTimestamp}
		switch {
		case a.Status.DetachError != nil:
			w.Why = "can't be detached: " + a.Status.DetachError.Message
		case !a.DeletionTimestamp.IsZero():
			w.since, w.Why = *a.DeletionTimestamp, "is being detached"
		case a.Status.AttachError != nil:
			w.Why = "can't be attached: " + a.Status.AttachError.Message
		case !a.Status.Attached:
			w.Why = "is being attached"
		default:
			continue
		}
		found = append(found, w)
	}
	return found
}

// waitingPods are those whose volumes the agent of a node without a kubelet, or the kubelet, can't
// mount.
func waitingPods(o *objects) (found []Waiting) {
	for i := range o.pods {
		pod := &o.pods[i]
		w := Waiting{Kind: "pod", Name: pod.Namespace + "/" + pod.Name, since: pod.CreationTimestamp}
		if c := facts.PodCondition(pod, stowagev1alpha1.VolumesReadyCondition); c != nil && c.Status != corev1.ConditionTrue {
			w.since, w.Why = c.LastTransitionTime, c.Reason+": "+c.Message
		} else if isStarting(*pod) {
			w.Why = facts.Newest(o.events[pod.UID], true, facts.MountEvents...)
		}
		if w.Why != "" {
			found = append(found, w)
		}
	}
	return found
}
