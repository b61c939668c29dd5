package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

// Annotations of Kubernetes that provisioning writes.
const (
	annProvisioner     = "volume.kubernetes.io/storage-provisioner"
	annBetaProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	annProvisionedBy   = "pv.kubernetes.io/provisioned-by"
	annBound           = "pv.kubernetes.io/bound-by-controller"
	annBindCompleted   = "pv.kubernetes.io/bind-completed"

	claimProtection = "kubernetes.io/pvc-protection"
)

// bareProvision sends the five writes of a claim that gets a volume made for it: the
// intent, the volume, its status, the claim with the intent cleared, its status.
func bareProvision(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) error {
	if err := bareIntent(ctx, writer, claim); err != nil {
		return err
	}
	return bareRecord(ctx, writer, claim, bareVolume(claim))
}

func bareIntent(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim) error {
	return writer.Patch(ctx, claim, merge{"metadata": object{
		"resourceVersion": claim.ResourceVersion,
		"finalizers":      []string{claimProtection, stowagev1alpha1.ProvisioningFinalizer},
		"annotations": object{
			stowagev1alpha1.ProvisioningAnnotation: fmt.Sprintf(`{"backend":%q,"attempt":1}`, class),
			annProvisioner:                         stowagev1alpha1.LocalDriver, annBetaProvisioner: stowagev1alpha1.LocalDriver,
		},
	}})
}

func bareRecord(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	if err := writer.Create(ctx, pv); err != nil {
		return err
	}
	if err := barePhase(ctx, writer, pv, corev1.VolumeBound); err != nil {
		return err
	}
	if err := writer.Patch(ctx, claim, merge{
		"metadata": object{
			"resourceVersion": claim.ResourceVersion,
			"finalizers":      []string{claimProtection},
			"annotations":     object{stowagev1alpha1.ProvisioningAnnotation: nil, annBound: "yes", annBindCompleted: "yes"},
		},
		"spec": object{"volumeName": pv.Name},
	}); err != nil {
		return err
	}
	return bareStatus(ctx, writer, claim, pv)
}

// bareReclaim sends the four writes that remove a claim that is deleted, and its volume: the claim without its finalizer, the
// volume's phase, its deletion, and the end of its finalizers. The volume's storage takes no time.
func bareReclaim(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	if err := bareRelease(ctx, writer, claim, claim.ResourceVersion); err != nil {
		return err
	}
	if err := barePhase(ctx, writer, pv, corev1.VolumeReleased); err != nil {
		return err
	}
	if err := writer.Delete(ctx, pv, client.Preconditions{UID: &pv.UID, ResourceVersion: &pv.ResourceVersion}); err != nil {
		return err
	}
	return bareRelease(ctx, writer, pv, nil)
}

// bareRelease lets an object go; a version of nil is any.
func bareRelease(ctx context.Context, writer client.Client, deleted client.Object, version any) error {
	return writer.Patch(ctx, deleted, merge{"metadata": object{"resourceVersion": version, "finalizers": nil}})
}

func bareVolume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := fixture.Volume("pvc-"+string(claim.UID), fixture.OfClass(class), fixture.Reclaimed(corev1.PersistentVolumeReclaimDelete))
	pv.ObjectMeta = metav1.ObjectMeta{
		Name:        pv.Name,
		Labels:      map[string]string{stowagev1alpha1.BackendLabel: class},
		Annotations: map[string]string{annProvisionedBy: stowagev1alpha1.LocalDriver, annBound: "yes"},
		Finalizers:  []string{stowagev1alpha1.ReclaimFinalizer},
	}
	pv.Spec.ClaimRef = referenceTo(claim)
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.LocalDriver, VolumeHandle: pv.Name,
		VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: class},
	}}
	return pv
}
