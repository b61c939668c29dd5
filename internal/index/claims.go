package index

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/storageclass"
)

// ClaimsOf returns the names of the claims that a pod uses, including those of its generic
// ephemeral volumes.
func ClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, source := range pod.Spec.Volumes {
		switch {
		case source.PersistentVolumeClaim != nil:
			names = append(names, source.PersistentVolumeClaim.ClaimName)
		case source.Ephemeral != nil:
			names = append(names, pod.Name+"-"+source.Name)
		}
	}
	return names
}

// VolumeOf returns the name of the volume that a claim is bound to or requests.
func VolumeOf(claim *corev1.PersistentVolumeClaim) []string {
	if claim.Spec.VolumeName == "" {
		return nil
	}
	return []string{claim.Spec.VolumeName}
}

// PendingClass is the index value of an unbound claim: its class.
func PendingClass(claim *corev1.PersistentVolumeClaim) []string {
	if binder.Completed(claim) {
		return nil
	}
	return []string{ClassKey(storageclass.Of(claim))}
}

// ClassKey turns a class into an index value. Claims without a class have one, too.
func ClassKey(class string) string { return "class/" + class }

// SourceOf returns what an unbound claim's volume is filled from: another claim, or a snapshot.
func SourceOf(claim *corev1.PersistentVolumeClaim) []string {
	kind, source, found := provisioned.SourceKey(claim)
	if !found || claim.Spec.VolumeName != "" {
		return nil
	}
	return []string{SourceKey(kind, source)}
}

// SourceKey turns the kind and the name of a data source into an index value. Claims of any namespace may have it.
func SourceKey(kind string, source types.NamespacedName) string { return kind + "/" + source.String() }

// PodOf returns the name of the pod that controls a claim.
func PodOf(claim *corev1.PersistentVolumeClaim) []string {
	owner := metav1.GetControllerOf(claim)
	if owner == nil || owner.Kind != "Pod" || owner.APIVersion != corev1.SchemeGroupVersion.String() {
		return nil
	}
	return []string{owner.Name}
}
