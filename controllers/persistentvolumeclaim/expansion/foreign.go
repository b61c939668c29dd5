package expansion

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/migration"
	"github.com/stowage-dev/stowage/internal/wake"
)

// leaveToExpander leaves a volume that Stowage does not serve to the resizer of its driver. In
// scope=classes kube-controller-manager does that.
func (r *Expander) leaveToExpander(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (*step.Wait, error) {
	if r.scope == reconciler.ClassesScope {
		return nil, nil
	}
	driver := migration.DriverOfVolume(pv)
	switch {
	case driver == "" && !expandedElsewhere(pv):
		return waitForNoExpander(claim, pv), nil
	case driver == "" || claim.Annotations[annResizer] == driver:
		return waitForForeignExpander(), nil
	}
	marked := *claim
	marked.Annotations = maps.Clone(claim.Annotations)
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, annResizer, driver)
	if gone, err := step.Annotate(ctx, r.client, claim, marked.Annotations); gone != nil || err != nil {
		return gone, err
	}
	return waitForForeignExpander(), nil
}

// expandedElsewhere reports whether a foreign program may grow a volume: its CSI or FlexVolume
// driver, or a provisioner that made it.
func expandedElsewhere(pv *corev1.PersistentVolume) bool {
	provisioner := pv.Annotations[volume.AnnDynamicallyProvisioned]
	return pv.Spec.CSI != nil && !backend.IsOurs(pv.Spec.CSI.Driver) || pv.Spec.FlexVolume != nil ||
		provisioner != "" && !migration.IsInTree(provisioner) && !backend.IsOurs(provisioner)
}

// annResizer of a claim names a CSI driver: its external-resizer grows the volume of an
// in-tree type. For a CSI source the resizer reads the driver from there.
const annResizer = "volume.kubernetes.io/storage-resizer"

func waitForNoExpander(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) *step.Wait {
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return &step.Wait{
		Event: event.VolumeResizeFailed, Warning: true,
		Message: fmt.Sprintf("no driver grows volume %s, which keeps %s: create a larger claim, and copy the data", pv.Name, has.String()),
	}
}

func waitForForeignExpander() *step.Wait {
	return &step.Wait{Event: event.ExternalExpanding, Message: "waiting for an external controller to expand this claim's volume"}
}

func waitForAllowance(class *storagev1.StorageClass) *step.Wait {
	return &step.Wait{
		Event: event.VolumeResizeFailed, Warning: true, After: wake.WithoutAnswer,
		Message: fmt.Sprintf("StorageClass %s does not let claims grow: set its allowVolumeExpansion, in the StorageBackend where Stowage keeps the class", class.Name),
	}
}

// waitAfterFailedExpansion returns when a failed expansion is retried: an infeasible one not
// before its request changes.
func waitAfterFailedExpansion(err error) *step.Wait {
	switch kind := backend.KindOf(err); {
	case isInfeasible(err):
		return nil
	case kind == backend.Exhausted || kind == backend.Unavailable:
		return &step.Wait{After: wake.WithoutAnswer}
	default:
		return &step.Wait{Retry: err}
	}
}
