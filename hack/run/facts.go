package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// fact is one thing to be said of an object. It is said again when its text
// changes.
type fact struct{ about, text string }

// factsOf is all that is worth a line.
func factsOf(object client.Object) []fact {
	var facts []fact
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		facts = append(claimConditions(o), claimPhase(o))
	case *corev1.PersistentVolume:
		facts = []fact{volumePhase(o)}
	case *corev1.Pod:
		facts = podConditions(o)
	case *stowagev1alpha1.StorageBackend:
		facts = conditions(o.Status.Conditions)
	case *stowagev1alpha1.LocalVolume:
		facts = conditions(o.Status.Conditions)
	case *storagev1.VolumeAttachment:
		facts = attachmentFacts(o)
	case *corev1.Event:
		facts = []fact{{"event", fmt.Sprintf("%s: %s", o.Reason, o.Message)}}
	}
	if object.GetDeletionTimestamp() != nil {
		facts = append(facts, fact{"deletion", "is being deleted"})
	}
	return facts
}

func claimPhase(claim *corev1.PersistentVolumeClaim) fact {
	if claim.Status.Phase == corev1.ClaimBound {
		return fact{"phase", "Bound to " + claim.Spec.VolumeName}
	}
	return fact{"phase", string(claim.Status.Phase)}
}

func volumePhase(volume *corev1.PersistentVolume) fact {
	phase := string(volume.Status.Phase)
	if phase == "" {
		phase = "new"
	}
	capacity := volume.Spec.Capacity[corev1.ResourceStorage]
	text := fmt.Sprintf("%s, %s, %s", phase, capacity.String(), volume.Spec.PersistentVolumeReclaimPolicy)
	if volume.Status.Phase == corev1.VolumeBound && volume.Spec.ClaimRef != nil {
		text += fmt.Sprintf(", claim %s/%s", volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
	}
	return fact{"phase", text}
}

func attachmentFacts(attachment *storagev1.VolumeAttachment) []fact {
	text := "is being attached to " + attachment.Spec.NodeName
	if attachment.Status.Attached {
		text = "attached to " + attachment.Spec.NodeName
	}
	if volume := attachment.Spec.Source.PersistentVolumeName; volume != nil {
		text = "volume " + *volume + " " + text
	}
	facts := []fact{{"attached", text}}
	for _, failure := range []*storagev1.VolumeError{attachment.Status.AttachError, attachment.Status.DetachError} {
		if failure != nil {
			facts = append(facts, fact{"error", failure.Message})
		}
	}
	return facts
}

func claimConditions(claim *corev1.PersistentVolumeClaim) []fact {
	var facts []fact
	for _, c := range claim.Status.Conditions {
		facts = append(facts, condition(string(c.Type), string(c.Status), c.Reason, c.Message))
	}
	return facts
}

func podConditions(pod *corev1.Pod) []fact {
	facts := []fact{{"node", "on node " + pod.Spec.NodeName}}
	if pod.Spec.NodeName == "" {
		facts[0].text = "has no node: there is no scheduler, set spec.nodeName"
	}
	for _, c := range pod.Status.Conditions {
		facts = append(facts, condition(string(c.Type), string(c.Status), c.Reason, c.Message))
	}
	return facts
}

func conditions(all []metav1.Condition) []fact {
	var facts []fact
	for _, c := range all {
		facts = append(facts, condition(c.Type, string(c.Status), c.Reason, c.Message))
	}
	return facts
}

func condition(kind, status, reason, message string) fact {
	text := kind + "=" + status
	if reason != "" && reason != kind {
		text += " (" + reason + ")"
	}
	if message != "" {
		text += ": " + message
	}
	return fact{kind, text}
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *corev1.PersistentVolumeClaim:
		return "claim"
	case *corev1.PersistentVolume:
		return "volume"
	case *corev1.Pod:
		return "pod"
	case *stowagev1alpha1.StorageBackend:
		return "backend"
	case *stowagev1alpha1.LocalVolume:
		return "local"
	case *storagev1.VolumeAttachment:
		return "attach"
	default:
		return "event"
	}
}

// shownOfHash is how much is shown of an attachment's name, which is a long hash.
const shownOfHash = 16

// nameOf is what an object is called; an event is called what it is about.
func nameOf(object client.Object) string {
	namespace, name := object.GetNamespace(), object.GetName()
	if event, isEvent := object.(*corev1.Event); isEvent {
		namespace, name = event.InvolvedObject.Namespace, event.InvolvedObject.Name
	}
	if _, isAttachment := object.(*storagev1.VolumeAttachment); isAttachment {
		name = name[:min(len(name), shownOfHash)]
	}
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
