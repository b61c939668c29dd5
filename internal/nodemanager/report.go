package nodemanager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/patch"
)

// reporter writes the conditions of pods, and records their events.
type reporter struct {
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
	// longWaits are the recorded events about long waits.
	longWaits event.Once[types.UID]
}

// ensureCondition writes how far the pod's volumes are, and records an event if that is new.
func (r *reporter) ensureCondition(ctx context.Context, at *pass) error {
	condition, ok := podstatus.ConditionOf(at.states)
	if !ok {
		return nil
	}
	r.recordLongWait(at, condition)
	if at.desired.hasWritten(at.pod, condition) {
		return nil
	}
	if written, err := r.setCondition(ctx, at.pod, condition); !written || err != nil {
		return err
	}
	at.desired.written, at.desired.writtenOver = condition, at.pod.ResourceVersion
	if event, ok := podstatus.EventOf(condition, at.states, at.desired.event); ok && event != at.desired.event {
		at.desired.event = event
		r.record(at.pod, event)
	}
	return nil
}

// setCondition writes a condition of a pod, and reports whether that changed it.
func (r *reporter) setCondition(ctx context.Context, pod *corev1.Pod, condition corev1.PodCondition) (bool, error) {
	condition, isNew := podstatus.Transition(pod, condition, r.clock.Now())
	if !isNew {
		return false, nil
	}
	written := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err := r.client.Status().Patch(ctx, written, patch.PodCondition(pod, condition))
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("writing the condition of pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return err == nil, nil
}

func (r *reporter) record(pod *corev1.Pod, event podstatus.PodEvent) {
	r.events.Eventf(pod, nil, event.Kind, event.Reason, event.Action, "%s", event.Note)
}

// recordLongWait records once what a pod has been waiting for long.
func (r *reporter) recordLongWait(at *pass, condition corev1.PodCondition) {
	if at.desired.wait.IsLong(condition, r.clock.Now()) && r.longWaits.IsNew(at.pod.UID, condition.Message) {
		at.desired.event = podstatus.PodEvent{Kind: corev1.EventTypeWarning, Reason: event.FailedMount, Action: "Mounting", Note: condition.Message}
		r.record(at.pod, at.desired.event)
	}
}

// metricsOf sums up a pass over a pod.
func metricsOf(tree poddir.Tree, at *pass) metrics.Pod {
	sums := metrics.Pod{Mounted: map[string]int{}, Pending: map[string]int{}, Claims: map[client.ObjectKey]metrics.ClaimMount{}}
	for i, volume := range at.desired.Volumes {
		state := at.states[i]
		switch {
		case state.Done && volume.Resolved != nil:
			sums.Mounted[volume.Resolved.Plugin.Name()]++
		case state.Err != nil:
			sums.Pending[podstatus.ReasonOf(state.Err)]++
		default:
			sums.Pending[metrics.Working]++
		}
		claim := podclaims.ClaimNameOf(at.pod, volume.Volume)
		if claim == "" || volume.Resolved == nil {
			continue
		}
		mounted := metrics.ClaimMount{
			Path: volume.Resolved.VisibleAt(tree, at.pod.UID), IsDevice: volume.Resolved.IsBlock(), Abnormal: state.Err != nil,
			Measure: volume.Resolved.MeasuredAt(tree.VolumeDir(at.pod.UID, volume.Resolved.Location())),
		}
		if mounted.IsDevice && state.Done && mounted.Measure != nil || !mounted.IsDevice && at.table.IsMountPoint(mounted.Path) {
			sums.Claims[client.ObjectKey{Namespace: at.pod.Namespace, Name: claim}] = mounted
		}
	}
	return sums
}
