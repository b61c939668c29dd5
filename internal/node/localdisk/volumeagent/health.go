package volumeagent

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/node/localdisk/inspect"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
)

// inspector reports usage and health of volumes in their status, in memory.
type inspector struct {
	base      layout.Base
	clock     clock.PassiveClock
	snapshots inspect.Snapshots
	walker    *usage.Walker
	metrics   *usage.Metrics
}

// report sets the usage and the health of a volume that was made. Problem is the error of
// the reconcile so far.
func (i *inspector) report(ctx context.Context, volume *stowagev1alpha1.NodeVolume, problem error) {
	troubles, uncounted := inspect.TroubleOf(problem), false
	if len(troubles) == 0 {
		found, err := i.inspect(volume)
		if troubles = slices.Concat(found.Troubles, inspect.TroubleOf(err)); err != nil && len(troubles) == 0 {
			// The inspection failed. The volume may be healthy: its condition stays.
			logf.FromContext(ctx).Error(err, "inspecting a volume", "volume", volume.Name)
			return
		}
		if err == nil {
			i.setUsage(volume, found)
		}
		uncounted = found.Uncounted
	}
	reason, message := inspect.Verdict(troubles)
	if uncounted {
		message += fmt.Sprintf("; how much is used isn't known, as it has more than %d files, or nests too deep to be counted", usage.MaxFiles)
	}
	setCondition(volume, stowagev1alpha1.HealthyCondition, reason, message)
}

// reportNew is report for a volume that was made just now. An empty directory needs no count.
func (i *inspector) reportNew(ctx context.Context, volume *stowagev1alpha1.NodeVolume) {
	if volume.Spec.Layout != stowagev1alpha1.LayoutImage && volume.Spec.Source == "" {
		usage.Set(volume, usage.Usage{Inodes: new(int64(1))}, i.clock.Now())
	}
	i.report(ctx, volume, nil)
}

// inspect reads the state of a volume and its disk.
func (i *inspector) inspect(volume *stowagev1alpha1.NodeVolume) (inspect.Report, error) {
	snapshot, err := i.snapshots.At(i.clock.Now())
	if err != nil {
		return inspect.Report{}, err
	}
	had := ""
	if before := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.HealthyCondition); before != nil {
		had = before.Reason
	}
	of := spec.VolumeOf(volume)
	found, err := inspect.Volume(i.base, of, snapshot, had)
	if err != nil {
		return found, err
	}
	if found.Usage == nil && of.Image == nil {
		count := i.countOf(volume, of)
		found.Usage, found.Uncounted = count.Usage, count.TooLarge
	}
	if found.Usage != nil && found.Enforced && of.IsFiles() && !spec.IsSnapshot(volume) {
		found.CheckLimits(had)
	}
	return found, nil
}

// countOf returns the last count of a directory without a quota.
func (i *inspector) countOf(volume *stowagev1alpha1.NodeVolume, of layout.Volume) usage.Count {
	var reported time.Time
	if volume.Status.UsedTime != nil {
		reported = volume.Status.UsedTime.Time
	}
	return i.walker.Of(of, reported)
}

func (i *inspector) setUsage(volume *stowagev1alpha1.NodeVolume, found inspect.Report) {
	volume.Status.Enforced = found.Enforced
	if found.Uncounted {
		volume.Status.Used, volume.Status.UsedInodes, volume.Status.UsedTime = nil, nil, nil
	}
	if found.Usage != nil {
		usage.Set(volume, *found.Usage, i.clock.Now())
	}
	i.metrics.Set(volume, found.Usage)
}

// forget drops the count and the metrics of a volume that is gone.
func (i *inspector) forget(name string) {
	i.walker.Forget(name)
	i.metrics.Forget(name)
}

// recordHealth sends an event on the claim if the health of its volume changed, after that
// was written. A snapshot isn't the claim's volume: its NodeVolume has the event.
func recordHealth(recorder events.EventRecorder, stored, volume *stowagev1alpha1.NodeVolume) {
	before := meta.FindStatusCondition(stored.Status.Conditions, stowagev1alpha1.HealthyCondition)
	now := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.HealthyCondition)
	wasHealthy := before == nil || before.Status == metav1.ConditionTrue
	if now == nil || wasHealthy && now.Status == metav1.ConditionTrue || before != nil && before.Message == now.Message {
		return
	}
	kind, reason := corev1.EventTypeWarning, event.VolumeConditionAbnormal
	if now.Status == metav1.ConditionTrue {
		kind, reason = corev1.EventTypeNormal, event.VolumeConditionNormal
	}
	if spec.IsSnapshot(volume) {
		recorder.Eventf(volume, nil, kind, reason, "Inspecting", "snapshot %s on node %s: %s", volume.Name, volume.Spec.NodeName, now.Message)
		return
	}
	claim := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim",
		Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name, UID: volume.Spec.ClaimRef.UID,
	}
	recorder.Eventf(claim, volume, kind, reason, "Inspecting", "volume %s on node %s: %s", volume.Name, volume.Spec.NodeName, now.Message)
}
