package main

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

var shownKinds = []struct {
	kind client.Object
	name string
}{
	{&stowagev1alpha1.StorageBackend{}, "backend"},
	{&corev1.PersistentVolumeClaim{}, "claim"},
	{&corev1.PersistentVolume{}, "volume"},
	{&stowagev1alpha1.NodeVolume{}, "local"},
	{&corev1.Pod{}, "pod"},
	{&storagev1.VolumeAttachment{}, "attach"},
	{&corev1.Event{}, "event"},
}

// fact is one thing to be said of an object. It is said again when its text
// changes.
type fact struct{ about, text string }

func factsOf(object client.Object) []fact {
	facts := conditions(object)
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		facts = append(facts, claimPhase(o))
	case *corev1.PersistentVolume:
		facts = []fact{volumePhase(o)}
	case *corev1.Pod:
		facts = append([]fact{podNode(o)}, facts...)
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
	phase := cmp.Or(string(volume.Status.Phase), "new")
	capacity := volume.Spec.Capacity[corev1.ResourceStorage]
	text := fmt.Sprintf("%s, %s, %s", phase, capacity.String(), volume.Spec.PersistentVolumeReclaimPolicy)
	if volume.Status.Phase == corev1.VolumeBound && volume.Spec.ClaimRef != nil {
		text += fmt.Sprintf(", claim %s/%s", volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
	}
	return fact{"phase", text}
}

func podNode(pod *corev1.Pod) fact {
	if pod.Spec.NodeName == "" {
		return fact{"node", "has no node: there is no scheduler, set spec.nodeName"}
	}
	return fact{"node", "on node " + pod.Spec.NodeName}
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

func conditions(object client.Object) (facts []fact) {
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(object) // an object of the API has fields
	all, _, _ := unstructured.NestedSlice(content, "status", "conditions")    // a kind without any has none
	for _, one := range all {
		field := func(name string) string {
			value, _, _ := unstructured.NestedString(one.(map[string]any), name)
			return value
		}
		kind, reason := field("type"), field("reason")
		text := kind + "=" + field("status")
		if reason != "" && reason != kind {
			text += " (" + reason + ")"
		}
		if message := field("message"); message != "" {
			text += ": " + message
		}
		facts = append(facts, fact{kind, text})
	}
	return facts
}

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
