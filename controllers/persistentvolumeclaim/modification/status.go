package modification

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const action = "Modify"

// Conditions are those of a change of attributes, and are removed with it.
var Conditions = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimVolumeModifyingVolume, corev1.PersistentVolumeClaimVolumeModifyVolumeError,
}

// record records a target before the backend is called. The refusal of an earlier call for the same
// target stays in the condition until there is another answer.
func (m *Modifier) record(ctx context.Context, claim *corev1.PersistentVolumeClaim, goal string) error {
	message := fmt.Sprintf("changing volume %s to VolumeAttributesClass %s", claim.Spec.VolumeName, goal)
	before := claim.Status.ModifyVolumeStatus
	refused := isRefused(before, goal)
	again := before != nil && before.TargetVolumeAttributesClassName == goal && before.Status == corev1.PersistentVolumeClaimModifyVolumeInProgress
	_, err := m.write(ctx, claim, func() {
		if !again {
			bindable.RemoveConditions(claim, Conditions...)
		}
		setStatus(claim, goal, corev1.PersistentVolumeClaimModifyVolumeInProgress)
		setModifying(claim, bindable.ReasonModifying, message)
	})
	if err != nil || again || refused {
		return err
	}
	m.events.Eventf(claim, nil, corev1.EventTypeNormal, event.VolumeModify, action, "%s", message)
	return nil
}

// recordMissing records that a class is missing. A target that may still be applied stays.
func (m *Modifier) recordMissing(ctx context.Context, claim *corev1.PersistentVolumeClaim, goal, what string) error {
	changed, err := m.write(ctx, claim, func() {
		if !mayStillApply(claim) {
			setStatus(claim, goal, corev1.PersistentVolumeClaimModifyVolumePending)
			bindable.RemoveConditions(claim, corev1.PersistentVolumeClaimVolumeModifyingVolume)
		}
		setError(claim, bindable.ReasonModifyClassMissing, what)
	})
	if changed {
		m.events.Eventf(claim, nil, corev1.EventTypeWarning, event.VolumeModifyFailed, action, "%s", what)
	}
	return err
}

// fail records why a volume isn't changed. A claim that names another class since gets that one as soon
// as the outcome is known.
func (m *Modifier) fail(ctx context.Context, claim *corev1.PersistentVolumeClaim, goal string, problem error) (*step.Wait, error) {
	if errors.Is(problem, backend.Queued) {
		return &step.Wait{After: wake.WithoutAnswer}, nil
	}
	changed, err := m.write(ctx, claim, func() {
		switch {
		case isInfeasible(problem):
			setStatus(claim, goal, corev1.PersistentVolumeClaimModifyVolumeInfeasible)
			bindable.RemoveConditions(claim, corev1.PersistentVolumeClaimVolumeModifyingVolume)
		case isFinal(problem):
			setModifying(claim, bindable.ReasonModifyRetry, fmt.Sprintf("changing volume %s to VolumeAttributesClass %s failed, and is tried again", claim.Spec.VolumeName, goal))
		}
		setError(claim, cmp.Or(string(backend.KindOf(problem)), bindable.ReasonOutcomeUnknown), problem.Error()+adviceAfter(problem))
	})
	if err != nil {
		return nil, err
	}
	if changed && !backend.Unfinished(problem) {
		m.events.Eventf(claim, nil, corev1.EventTypeWarning, event.VolumeModifyFailed, action, "%v%s", problem, adviceAfter(problem))
	}
	switch {
	case isFinal(problem) && requestedBy(claim) != goal:
		return &step.Wait{After: wake.AfterContention}, nil
	case isInfeasible(problem):
		return &step.Wait{After: retryInfeasible}, nil
	case backend.Unfinished(problem) || errors.Is(problem, backend.Unavailable):
		return &step.Wait{After: wake.WithoutAnswer}, nil
	default:
		return &step.Wait{Retry: problem}, nil
	}
}

// adviceAfter is what a user can do after an error.
func adviceAfter(problem error) string {
	switch {
	case isInfeasible(problem):
		return ": name another class in spec.volumeAttributesClassName of the claim"
	case errors.Is(problem, backend.NotReady):
		return " (the volume may have some of the attributes already; tried again, ever more slowly; the claim can name another class)"
	case isFinal(problem):
		return " (tried again, ever more slowly; the claim can name another class)"
	default:
		return " (tried again, and no other class before the outcome is known)"
	}
}

// finish records that a volume has the attributes: first the PersistentVolume, which a claim that is
// bound later takes them from.
func (m *Modifier) finish(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume, goal string) error {
	if ptr.Deref(pv.Spec.VolumeAttributesClassName, "") != goal {
		before := pv.DeepCopy()
		pv.Spec.VolumeAttributesClassName = &goal
		if err := m.client.Patch(ctx, pv, patch.Fenced(before)); err != nil {
			return fmt.Errorf("setting the VolumeAttributesClass of volume %s to %s: %w", pv.Name, goal, err)
		}
	}
	_, err := m.write(ctx, claim, func() {
		claim.Status.CurrentVolumeAttributesClassName, claim.Status.ModifyVolumeStatus = &goal, nil
		bindable.RemoveConditions(claim, Conditions...)
	})
	if err != nil {
		return err
	}
	m.events.Eventf(claim, pv, corev1.EventTypeNormal, event.VolumeModifySuccessful, action, "volume %s has the attributes of VolumeAttributesClass %s now", pv.Name, goal)
	return nil
}

// cancel ends a change that the claim doesn't ask for any more, and of which no call goes on.
func (m *Modifier) cancel(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	changed, err := m.write(ctx, claim, func() {
		claim.Status.ModifyVolumeStatus = nil
		bindable.RemoveConditions(claim, Conditions...)
	})
	if changed {
		m.events.Eventf(claim, nil, corev1.EventTypeNormal, event.VolumeModifyCanceled, action, "the claim names no VolumeAttributesClass any more: nothing more of the volume is changed")
	}
	return err
}

func (m *Modifier) write(ctx context.Context, claim *corev1.PersistentVolumeClaim, set func()) (changed bool, err error) {
	changed, err = step.WriteStatus(ctx, m.client, claim, set)
	return changed, wrap.Error(err, "writing how the volume of claim %s/%s changes", claim.Namespace, claim.Name)
}

func setStatus(claim *corev1.PersistentVolumeClaim, goal string, status corev1.PersistentVolumeClaimModifyVolumeStatus) {
	claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: goal, Status: status}
}

func setModifying(claim *corev1.PersistentVolumeClaim, reason, message string) {
	bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimVolumeModifyingVolume, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	})
}

func setError(claim *corev1.PersistentVolumeClaim, reason, message string) {
	bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimVolumeModifyVolumeError, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	})
}
