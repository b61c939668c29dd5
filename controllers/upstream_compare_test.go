package controllers

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/uses"
)

// What a row compares of its volumes and claims, where it is not all.
const (
	comparedFinalizers  = "finalizers"
	comparedAnnotations = "annotations"
)

func (s *stage) compareClaim(name string, got, want *corev1.PersistentVolumeClaim) []string {
	if got == nil {
		return []string{"claim " + name + " is gone"}
	}
	c := &rowComparison{of: "claim " + name}
	c.equal("annotations", withoutOwn(got.Annotations), withoutOwn(want.Annotations))
	if s.row.Compared == comparedAnnotations {
		return c.problems
	}
	c.equal("volumeName", got.Spec.VolumeName, s.volumeName(want.Spec.VolumeName))
	c.equal("class", ptr.Deref(got.Spec.StorageClassName, "(none)"), ptr.Deref(want.Spec.StorageClassName, "(none)"))
	c.equal("phase", got.Status.Phase, want.Status.Phase)
	c.equal("capacity", got.Status.Capacity.Storage().String(), want.Status.Capacity.Storage().String())
	c.equal("accessModes", got.Status.AccessModes, want.Status.AccessModes)
	c.equal("volumeAttributesClass", ptr.Deref(got.Status.CurrentVolumeAttributesClassName, ""), ptr.Deref(want.Status.CurrentVolumeAttributesClassName, ""))
	return c.problems
}

func (s *stage) compareVolume(got, want *corev1.PersistentVolume) []string {
	if got == nil {
		return []string{"volume " + want.Name + " is gone"}
	}
	c := &rowComparison{of: "volume " + got.Name}
	if s.row.Compared != comparedAnnotations {
		c.equal("finalizers", deletersOf(got), deletersOf(want))
	}
	if s.row.Compared == comparedFinalizers {
		return c.problems
	}
	c.equal("annotations", withoutOwn(got.Annotations), withoutOwn(want.Annotations))
	if s.row.Compared == comparedAnnotations {
		return c.problems
	}
	c.equal("claimRef", claimRefText(got), claimRefText(want))
	if want.Status.Phase != "" {
		c.equal("phase", got.Status.Phase, want.Status.Phase)
	}
	c.equal("a message", got.Status.Message != "", want.Status.Message != "")
	return c.problems
}

// rowComparison collects differences.
type rowComparison struct {
	of       string
	problems []string
}

func (c *rowComparison) equal(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.problems = append(c.problems, fmt.Sprintf("%s: %s is %v, not %v", c.of, what, got, want))
	}
}

// withoutOwn are the annotations but for Stowage's, of which upstream knows nothing.
func withoutOwn(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	delete(kept, stowagev1alpha1.ProvisioningAnnotation)
	delete(kept, stowagev1alpha1.CapacityAnnotation)
	return kept
}

// deletersOf returns the finalizers of the controllers that delete a volume's storage: all that
// are neither Kubernetes' protection nor Stowage's.
func deletersOf(pv *corev1.PersistentVolume) []string {
	kept := slices.DeleteFunc(slices.Clone(pv.Finalizers), func(finalizer string) bool { return finalizer == uses.VolumeProtection })
	slices.Sort(kept)
	return kept
}

func claimRefText(pv *corev1.PersistentVolume) string {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return "none"
	}
	return fmt.Sprintf("%s/%s %s, chosen by a controller: %v", ref.Namespace, ref.Name, ref.UID, pv.Annotations[volume.AnnBoundByController] != "")
}
