package reclaim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// windowWarning is how long before the end of an undelete window an event announces it.
const windowWarning = time.Hour

// keep shows on a volume how long its data is kept, and returns when to reconcile it again.
func (r *Reclaimer) keep(ctx context.Context, pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend, left time.Duration) (ctrl.Result, error) {
	from := windowBegan(pv)
	if from == nil {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	window := object.Spec.Deletion.RetainFor.Duration
	until := from.Add(window)
	deadline := until.UTC().Format(time.RFC3339)
	if err := r.showWindow(ctx, pv, until); err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case left > windowWarning:
		left -= windowWarning
	case window > windowWarning && r.recorded.IsNew(client.ObjectKeyFromObject(pv), deadline):
		r.recordWindow(pv, corev1.EventTypeWarning, event.UndeleteWindowEnds, noteOf(pv, deadline))
	}
	return ctrl.Result{RequeueAfter: left}, nil
}

// showWindow writes the deadline to the volume's status. The first write is the beginning of the
// window, and has an event.
func (r *Reclaimer) showWindow(ctx context.Context, pv *corev1.PersistentVolume, deadline time.Time) error {
	before, note := pv.DeepCopy(), noteOf(pv, deadline.UTC().Format(time.RFC3339))
	pv.Status.Reason = volume.UndeletableReason(deadline)
	if pv.Status.Phase == corev1.VolumeReleased {
		pv.Status.Message = note // that of another phase belongs to the phase
	}
	if before.Status.Reason == pv.Status.Reason && before.Status.Message == pv.Status.Message {
		return nil
	}
	if err := r.client.Status().Patch(ctx, pv, patch.Fenced(before)); err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "writing how long the data of volume %s is kept", pv.Name)
	}
	if !volume.InUndeleteWindow(before) {
		r.recordWindow(pv, corev1.EventTypeNormal, event.UndeleteWindowBegan, note)
	}
	return nil
}

// hideWindow removes the deadline from a volume whose data isn't to be deleted any more.
func (r *Reclaimer) hideWindow(ctx context.Context, pv *corev1.PersistentVolume) error {
	if !volume.InUndeleteWindow(pv) {
		return nil
	}
	before := pv.DeepCopy()
	pv.Status.Reason, pv.Status.Message = "", ""
	err := r.client.Status().Patch(ctx, pv, patch.Fenced(before))
	return wrap.Error(client.IgnoreNotFound(err), "ending the undelete window of volume %s", pv.Name)
}

// recordWindow records an event on the volume, and one for the namespace of its claim, where users
// may read events.
func (r *Reclaimer) recordWindow(pv *corev1.PersistentVolume, kind, reason, note string) {
	r.events.Eventf(pv, nil, kind, reason, "Delete", "%s", note)
	if ref := pv.Spec.ClaimRef.DeepCopy(); ref != nil {
		ref.APIVersion, ref.Kind = corev1.SchemeGroupVersion.String(), "PersistentVolumeClaim"
		event.Unlogged(r.events).Eventf(ref, nil, kind, reason, "Delete", "%s", note)
	}
}

func noteOf(pv *corev1.PersistentVolume, deadline string) string {
	what := "volume " + pv.Name
	if ref := pv.Spec.ClaimRef; ref != nil {
		what += fmt.Sprintf(" of claim %s/%s", ref.Namespace, ref.Name)
	}
	return fmt.Sprintf("the data of %s is kept until %s, and deleted then: "+
		"docs/operate/undelete.md says how to give it back", what, deadline)
}
