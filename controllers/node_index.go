package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
)

// Names of the cache's field indexes that nodes are looked at by.
const (
	// podsByNode is the API server's own name of the same, which can be asked, too.
	podsByNode = "spec.nodeName"
	// podsByVolume finds pods by what they name themselves, and nodesByVolume nodes by
	// what they were told: both by the kubelet's name of it.
	podsByVolume  = "stowage.volume"
	nodesByVolume = "stowage.volume"
	// attachmentsByStorage is attachmentsByVolume, and finds what pods name, too.
	attachmentsByStorage = "stowage.storage"
)

func nodeOfIndexedPod(object client.Object) []string {
	return []string{object.(*corev1.Pod).Spec.NodeName}
}

// inlineVolumesOf are the kubelet's names of the volumes that a pod names itself.
func inlineVolumesOf(object client.Object) []string {
	pod := object.(*corev1.Pod)
	var names []string
	for i := range pod.Spec.Volumes {
		if !attach.IsInline(&pod.Spec.Volumes[i]) {
			continue
		}
		if volume, attachable, err := attach.OfInline(&pod.Spec.Volumes[i], pod.Namespace); err == nil && attachable {
			names = append(names, string(volume.Name))
		}
	}
	return names
}

// volumesToldTo are the names of the volumes that a node was told of.
func volumesToldTo(object client.Object) []string {
	told := object.(*corev1.Node).Status.VolumesAttached
	names := make([]string, 0, len(told))
	for _, attached := range told {
		names = append(names, string(attached.Name))
	}
	return names
}
