package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilexec "k8s.io/utils/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

// bareExtended has all of a file system made at once, as the agent does: what is
// left to the kernel is made after the first mount.
const bareExtended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"

func runBareLocal(ctx context.Context, kubeconfig string, arguments []string) error {
	return runBareClaims(ctx, kubeconfig, bareLocal(stowagev1alpha1.LocalLayout(arguments[0]), arguments[1]), nil)
}

// bareLocal sends the seven writes of a claim that gets a local volume, and does to
// the disk what has to be done, on one node: the intent, the NodeVolume, a directory
// or a file system in a file, the NodeVolume's status, the volume, its status, the
// claim with the intent cleared, its status.
func bareLocal(layout stowagev1alpha1.LocalLayout, folder string) claimWrites {
	onDisk := bareDirectory
	if layout == stowagev1alpha1.LayoutImage {
		onDisk = bareImage
	}
	return func(ctx context.Context, writer client.Client, claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) error {
		if err := bareIntent(ctx, writer, claim); err != nil {
			return err
		}
		local := bareNodeVolume(claim, layout, folder)
		if err := writer.Create(ctx, local); err != nil {
			return err
		}
		if err := onDisk(ctx, filepath.Join(folder, local.Name)); err != nil {
			return fmt.Errorf("making %s: %w", local.Name, err)
		}
		if err := bareProvisioned(ctx, writer, local); err != nil {
			return err
		}
		return bareRecord(ctx, writer, claim, bareLocalVolume(claim, local))
	}
}

func bareDirectory(_ context.Context, path string) error {
	return os.MkdirAll(path, 0o700)
}

func bareImage(ctx context.Context, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	image, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	size := localCapacity()
	if err := loopdev.Allocate(image, size.Value()); err != nil {
		return err
	}
	output, err := utilexec.New().CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-m0", "-b4096", "-I256", "-E", bareExtended, path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %s", err, output)
	}
	return nil
}

func localCapacity() resource.Quantity { return resource.MustParse(localSize) }

func bareNodeVolume(claim *corev1.PersistentVolumeClaim, layout stowagev1alpha1.LocalLayout, folder string) *stowagev1alpha1.NodeVolume {
	local := &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:       "pvc-" + string(claim.UID),
			Labels:     map[string]string{stowagev1alpha1.BackendLabel: class},
			Finalizers: []string{stowagev1alpha1.NodeVolumeFinalizer},
		},
		Spec: stowagev1alpha1.NodeVolumeSpec{
			NodeName: localNode, Backend: class, Path: stowagev1alpha1.AbsolutePath(folder), Capacity: localCapacity(), Layout: layout,
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		},
	}
	if layout == stowagev1alpha1.LayoutImage {
		local.Spec.FSType, local.Spec.Allocation = "ext4", stowagev1alpha1.AllocationFull
	}
	return local
}

func bareProvisioned(ctx context.Context, writer client.Client, local *stowagev1alpha1.NodeVolume) error {
	local.Status = stowagev1alpha1.NodeVolumeStatus{
		ObservedGeneration: local.Generation, Path: string(local.Spec.Path) + "/" + local.Name, Capacity: new(localCapacity()),
	}
	if local.Spec.Layout == stowagev1alpha1.LayoutDirectory {
		local.Status.Used, local.Status.UsedInodes, local.Status.UsedTime = new(localCapacity()), new(int64(1)), new(metav1.Now())
	} else {
		local.Status.Enforced = true
	}
	for _, kind := range []string{
		stowagev1alpha1.ProvisionedCondition, stowagev1alpha1.ReadyCondition, stowagev1alpha1.GrantedCondition, stowagev1alpha1.HealthyCondition,
	} {
		local.Status.Conditions = append(local.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: stowagev1alpha1.ReasonReady,
			Message: "the volume can be mounted", LastTransitionTime: metav1.Now(), ObservedGeneration: local.Generation,
		})
	}
	return writer.Status().Patch(ctx, local, merge{"status": local.Status})
}

// bareLocalVolume is the volume of a claim that lies on the node of its NodeVolume.
func bareLocalVolume(claim *corev1.PersistentVolumeClaim, local *stowagev1alpha1.NodeVolume) *corev1.PersistentVolume {
	pv := bareVolume(claim)
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: localCapacity()}
	pv.Spec.CSI.FSType = local.Spec.FSType
	pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.PathAttribute] = local.Status.Path
	pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.LayoutAttribute] = string(local.Spec.Layout)
	fixture.OnNode(localNode)(pv)
	return pv
}
