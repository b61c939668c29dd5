package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/guests"
)

// show prints what helps to understand a failure.
func (s *tale) show() {
	s.showObjects()
	for _, node := range s.nodes {
		var mounts []string
		if node != nil && node.Ask("Files.Mounts", guests.AgentRoot, &mounts) == nil {
			heading("mounts of "+node.Name, strings.Join(mounts, "\n"))
		}
	}
	if s.cloud != nil {
		attached, err := s.cloud.attachedTo(s.Ctx)
		heading("what the cloud has attached", fmt.Sprint(attached, " ", err))
	}
	logs, _ := filepath.Glob(filepath.Join(s.folder.Logs(), "*.log")) // the pattern is well-formed
	if s.stowage != nil {
		logs = append(logs, s.stowage.Manager.LogFile)
	}
	for _, log := range logs {
		content, _ := os.ReadFile(log) // one that can't be read is shown empty
		heading("the end of "+filepath.Base(log), ending(string(content)))
	}
}

func heading(what, text string) { fmt.Printf("\n--- %s\n%s\n", what, text) }

// noise is what logs have much of and nobody needs: calls that this program itself
// makes all the time, and how controllers start.
var noise = []string{`"zoneOperations.list"`, `"instances.list"`, "Starting EventSource", "Starting Controller", "Starting workers"}

// ending is the end of a log, without noise.
func ending(log string) string {
	const most = 6000
	var kept []string
lines:
	for line := range strings.Lines(log) {
		for _, unwanted := range noise {
			if strings.Contains(line, unwanted) {
				continue lines
			}
		}
		kept = append(kept, line)
	}
	text := strings.Join(kept, "")
	return text[max(0, len(text)-most):]
}

func (s *tale) showObjects() {
	if s.stowage == nil {
		return
	}
	for _, list := range []client.ObjectList{
		&stowagev1alpha1.StorageBackendList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{},
		&storagev1.VolumeAttachmentList{}, &corev1.NodeList{}, &corev1.PodList{}, &corev1.EventList{},
	} {
		if err := s.stowage.Client.List(s.Ctx, list); err != nil {
			heading("listing objects", err.Error())
			continue
		}
		heading(fmt.Sprintf("%T", list), described(list))
	}
}

// described is what matters of objects, a line each.
func described(list client.ObjectList) string {
	var text strings.Builder
	line := func(object client.Object, more ...any) {
		fmt.Fprintf(&text, "%s, deletion %v, finalizers %v: %+v\n", object.GetName(), object.GetDeletionTimestamp(), object.GetFinalizers(), more)
	}
	switch all := list.(type) {
	case *stowagev1alpha1.StorageBackendList:
		for _, backend := range all.Items {
			line(&backend, backend.Status.Conditions)
		}
	case *corev1.PersistentVolumeClaimList:
		for _, claim := range all.Items {
			line(&claim, claim.Annotations, claim.Status)
		}
	case *corev1.PersistentVolumeList:
		for _, volume := range all.Items {
			line(&volume, volume.Annotations, volume.Status)
		}
	case *storagev1.VolumeAttachmentList:
		for _, attachment := range all.Items {
			line(&attachment, attachment.Spec.NodeName, *attachment.Spec.Source.PersistentVolumeName, attachment.Status)
		}
	case *corev1.NodeList:
		for _, node := range all.Items {
			line(&node, node.Annotations, node.Spec.Taints, node.Status.Conditions, node.Status.VolumesInUse, node.Status.VolumesAttached)
		}
	case *corev1.PodList:
		for _, pod := range all.Items {
			line(&pod, pod.Spec.NodeName, pod.Status.Conditions)
		}
	case *corev1.EventList:
		for _, event := range all.Items {
			fmt.Fprintf(&text, "%s %s: %s: %s\n", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
	return text.String()
}
