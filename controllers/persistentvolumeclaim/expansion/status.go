package expansion

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// AnnNodeExpansionNotRequired of a claim means that its expansion needs no step on a node:
	// kubelets skip it.
	AnnNodeExpansionNotRequired = "volume.kubernetes.io/node-expansion-not-required"
)

// ResizeConditions are the conditions of an expansion, and are removed with it.
var ResizeConditions = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
}

// isRecorded reports whether a claim records that its volume is growing to a size.
func isRecorded(claim *corev1.PersistentVolumeClaim, goal resource.Quantity) bool {
	tried, known := claim.Status.AllocatedResources[corev1.ResourceStorage]
	return known && tried.Cmp(goal) == 0 && ResizeStatus(claim) == corev1.PersistentVolumeClaimControllerResizeInProgress
}

func (r *Expander) recordExpansion(ctx context.Context, claim *corev1.PersistentVolumeClaim, goal resource.Quantity) error {
	message := fmt.Sprintf("growing volume %s to %s", claim.Spec.VolumeName, goal.String())
	_, err := r.writeExpansion(ctx, claim, func() {
		setStorage(&claim.Status.AllocatedResources, goal)
		setStorage(&claim.Status.AllocatedResourceStatuses, corev1.PersistentVolumeClaimControllerResizeInProgress)
		bindable.RemoveConditions(claim, ResizeConditions...)
		bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue, Reason: bindable.ReasonResizing, Message: message,
		})
	})
	if err != nil {
		return err
	}
	r.events.Eventf(claim, nil, corev1.EventTypeNormal, event.Resizing, "Expand", "%s", message)
	return nil
}

func (r *Expander) failExpansion(ctx context.Context, claim *corev1.PersistentVolumeClaim, problem error) (*step.Wait, error) {
	if backend.Unfinished(problem) {
		return &step.Wait{After: wake.WithoutAnswer}, nil
	}
	changed, err := r.writeExpansion(ctx, claim, func() {
		if isInfeasible(problem) {
			setStorage(&claim.Status.AllocatedResourceStatuses, corev1.PersistentVolumeClaimControllerResizeInfeasible)
			bindable.RemoveConditions(claim, corev1.PersistentVolumeClaimResizing)
		}
		bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue,
			Reason: cmp.Or(string(backend.KindOf(problem)), bindable.ReasonOutcomeUnknown), Message: problem.Error(),
		})
	})
	if err != nil {
		return nil, err
	}
	if changed {
		r.events.Eventf(claim, nil, corev1.EventTypeWarning, event.VolumeResizeFailed, "Expand", "%v", problem)
	}
	return waitAfterFailedExpansion(problem), nil
}

// ensureVolumeSize writes the new size to the PersistentVolume. It also records whether the
// size is enforced, and the earlier size of the file system.
func (r *Expander) ensureVolumeSize(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, expanded backend.Expansion, worth string,
) error {
	before := pv.DeepCopy()
	changed := setAnnotation(pv, stowagev1alpha1.CapacityAnnotation, worth)
	if has := pv.Spec.Capacity[corev1.ResourceStorage]; has.Cmp(expanded.Capacity) < 0 {
		pv.Spec.Capacity[corev1.ResourceStorage] = expanded.Capacity
		changed = true
	}
	if expanded.OnNode && pv.Annotations[step.AnnPreResizeCapacity] == "" {
		had := claim.Status.Capacity[corev1.ResourceStorage]
		changed = setAnnotation(pv, step.AnnPreResizeCapacity, had.String()) || changed
	}
	if !changed {
		return nil
	}
	err := r.client.Patch(ctx, pv, patch.Fenced(before))
	return wrap.Error(err, "setting the capacity of volume %s to %s", pv.Name, expanded.Capacity.String())
}

// leaveToNode records that a node has to grow the file system, and stops there.
func (r *Expander) leaveToNode(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	_, err := r.writeExpansion(ctx, claim, func() {
		setAnnotation(claim, AnnNodeExpansionNotRequired, "")
		setStorage(&claim.Status.AllocatedResourceStatuses, corev1.PersistentVolumeClaimNodeResizePending)
		bindable.RemoveConditions(claim, corev1.PersistentVolumeClaimControllerResizeError)
		bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue, Reason: bindable.ReasonNodeResizePending,
			Message: "the volume has grown; its file system grows on the node of the pod that uses it: start a pod, if there is none",
		})
	})
	if err != nil {
		return err
	}
	r.events.Eventf(claim, pv, corev1.EventTypeNormal, event.FileSystemResizeRequired, "Expand", "Require file system resize of volume on node")
	return nil
}

// finishExpansion records the claim's new size, and whether it is enforced.
func (r *Expander) finishExpansion(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, worth string) error {
	has := pv.Spec.Capacity[corev1.ResourceStorage]
	_, err := r.writeExpansion(ctx, claim, func() {
		setAnnotation(claim, AnnNodeExpansionNotRequired, "true")
		setAnnotation(claim, stowagev1alpha1.CapacityAnnotation, worth)
		claim.Status.Capacity[corev1.ResourceStorage] = has
		delete(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
		bindable.RemoveConditions(claim, ResizeConditions...)
	})
	if err != nil {
		return err
	}
	note := fmt.Sprintf("volume %s has %s now", pv.Name, has.String())
	if worth == stowagev1alpha1.CapacityAdvisory {
		note += ", a label: nothing keeps the claim from using more, nor others from using it up"
	}
	r.events.Eventf(claim, pv, corev1.EventTypeNormal, event.VolumeResizeSuccessful, "Expand", "%s", note)
	return nil
}

// forgetEarlierSize removes the mark of a volume after a node has grown its file system.
func (r *Expander) forgetEarlierSize(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	has, grown := claim.Status.Capacity[corev1.ResourceStorage], pv.Spec.Capacity[corev1.ResourceStorage]
	if pv.Annotations[step.AnnPreResizeCapacity] == "" || claim.Status.Phase != corev1.ClaimBound || has.Cmp(grown) < 0 {
		return nil
	}
	after := pv.DeepCopy()
	setAnnotation(after, step.AnnPreResizeCapacity, "")
	err := r.client.Patch(ctx, after, patch.Fenced(pv))
	return wrap.Error(err, "removing the mark of a growth from volume %s", pv.Name)
}

func (r *Expander) writeExpansion(ctx context.Context, claim *corev1.PersistentVolumeClaim, set func()) (changed bool, err error) {
	changed, err = step.WriteStatus(ctx, r.client, claim, set)
	return changed, wrap.Error(err, "writing how claim %s/%s grows", claim.Namespace, claim.Name)
}

// setStorage sets the entry of storage, in a map that may be nil.
func setStorage[M ~map[corev1.ResourceName]V, V any](entries *M, value V) {
	if *entries == nil {
		*entries = M{}
	}
	(*entries)[corev1.ResourceStorage] = value
}

// setAnnotation sets an annotation in memory, or removes it if the value is empty. It reports
// whether that changed anything.
func setAnnotation(object metav1.Object, key, value string) (changed bool) {
	annotations := object.GetAnnotations()
	if annotations[key] == value {
		return false
	}
	if value == "" {
		delete(annotations, key)
		return true
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
	return true
}
