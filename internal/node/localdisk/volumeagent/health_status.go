package volumeagent

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/inspect"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
)

// Reasons of events on claims: those by which volumes' health is known elsewhere in
// Kubernetes.
const (
	healthAbnormal = "VolumeConditionAbnormal"
	healthNormal   = "VolumeConditionNormal"
)

// look says in the status how much of a volume that was made is used, and how it is.
// Problem is what a pass over it came to.
func (r *Reconciler) look(ctx context.Context, volume *stowagev1alpha1.NodeVolume, problem error) {
	troubles, uncounted := inspect.TroubleOf(problem), false
	if len(troubles) == 0 {
		seen, err := r.see(volume)
		if troubles = slices.Concat(seen.Troubles, inspect.TroubleOf(err)); err != nil && len(troubles) == 0 {
			// What is wrong with the look says nothing of the volume.
			logf.FromContext(ctx).Error(err, "looking at a volume", "volume", volume.Name)
			return
		}
		if err == nil {
			r.setSeen(volume, seen)
		}
		uncounted = seen.Uncounted
	}
	reason, message := inspect.Verdict(troubles)
	if uncounted {
		message += fmt.Sprintf("; how much is used isn't known, as it has more than %d files, or nests too deep to be counted", usage.MaxFiles)
	}
	setCondition(volume, stowagev1alpha1.HealthyCondition, reason, message)
}

// lookAtNew looks at a volume that was made just now. An empty directory has nothing
// that must be counted to be known.
func (r *Reconciler) lookAtNew(ctx context.Context, volume *stowagev1alpha1.NodeVolume) {
	if volume.Spec.Layout != stowagev1alpha1.LayoutImage && volume.Spec.Source == "" {
		usage.Set(volume, usage.Usage{Inodes: new(int64(1))}, r.Clock.Now())
	}
	r.look(ctx, volume, nil)
}

// forget drops what is known of a volume that is gone.
func (r *Reconciler) forget(request reconcile.Request) {
	r.lanes.Drop(request)
	r.walker.Forget(request.Name)
	r.numbers.Forget(request.Name)
}

// see looks at a volume's disk, and remembers what is counted.
func (r *Reconciler) see(volume *stowagev1alpha1.NodeVolume) (inspect.Report, error) {
	at, err := r.scenes.At(r.Clock.Now())
	if err != nil {
		return inspect.Report{}, err
	}
	had := ""
	if before := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.HealthyCondition); before != nil {
		had = before.Reason
	}
	of := spec.VolumeOf(volume)
	seen, err := inspect.Volume(r.Store.Base, of, at, had)
	if err != nil {
		return seen, err
	}
	if seen.Usage == nil && of.Image == nil {
		counted := r.counted(volume, of)
		seen.Usage, seen.Uncounted = counted.Usage, counted.TooLarge
	}
	if seen.Usage != nil && seen.Enforced && of.IsFiles() {
		seen.CheckLimits(had)
	}
	return seen, nil
}

// counted is what is known of a directory without a quota.
func (r *Reconciler) counted(volume *stowagev1alpha1.NodeVolume, of layout.Volume) usage.Count {
	var told time.Time
	if volume.Status.UsedTime != nil {
		told = volume.Status.UsedTime.Time
	}
	return r.walker.Of(of, told)
}

// setSeen says in memory what a look showed.
func (r *Reconciler) setSeen(volume *stowagev1alpha1.NodeVolume, seen inspect.Report) {
	volume.Status.Enforced = seen.Enforced
	if seen.Uncounted {
		volume.Status.Used, volume.Status.UsedInodes, volume.Status.UsedTime = nil, nil, nil
	}
	if seen.Usage != nil {
		usage.Set(volume, *seen.Usage, r.Clock.Now())
	}
	r.numbers.Set(volume, seen.Usage)
}

// tellHealth tells of the health of a volume on the claim, once it was written that it
// changed.
func (r *Reconciler) tellHealth(stored, volume *stowagev1alpha1.NodeVolume) {
	before := meta.FindStatusCondition(stored.Status.Conditions, stowagev1alpha1.HealthyCondition)
	now := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.HealthyCondition)
	wasWell := before == nil || before.Status == metav1.ConditionTrue
	if now == nil || wasWell && now.Status == metav1.ConditionTrue || before != nil && before.Message == now.Message {
		return
	}
	kind, reason := corev1.EventTypeWarning, healthAbnormal
	if now.Status == metav1.ConditionTrue {
		kind, reason = corev1.EventTypeNormal, healthNormal
	}
	claim := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim",
		Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name, UID: volume.Spec.ClaimRef.UID,
	}
	r.Events.Eventf(claim, volume, kind, reason, "Looking", "volume %s on node %s: %s", volume.Name, volume.Spec.NodeName, now.Message)
}
