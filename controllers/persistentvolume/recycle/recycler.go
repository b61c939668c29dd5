package recycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
)

// Recycler empties volumes of policy Recycle, so that other claims can have them.
type Recycler struct {
	client   client.Client
	live     client.Reader
	claims   *liveread.Claims
	storage  *opener.Opener
	wake     func(types.NamespacedName)
	events   events.EventRecorder
	recorded *event.Last
}

// New makes a recycler. It calls wake for a volume when a call has an answer.
func New(deps reconciler.Dependencies, wake func(types.NamespacedName), recorded *event.Last) *Recycler {
	return &Recycler{client: deps.Client, live: deps.Live, claims: deps.Reads.Claims, storage: deps.Storage, wake: wake, events: deps.Events, recorded: recorded}
}

func (r *Recycler) record(pv *corev1.PersistentVolume, kind, reason string, err error) {
	if r.recorded.IsNew(client.ObjectKeyFromObject(pv), err.Error()) {
		r.events.Eventf(pv, nil, kind, reason, "Recycle", "%v", err)
	}
}

// free removes the claimRef of an empty volume. A claimRef that a person wrote keeps its name,
// as for every volume that becomes free.
func (r *Recycler) free(ctx context.Context, pv *corev1.PersistentVolume) error {
	before := pv.DeepCopy()
	delete(pv.Annotations, stowagev1alpha1.RecyclingAnnotation)
	binder.UnbindVolume(pv)
	if err := patch.Volume(ctx, r.client, before, pv, "freeing"); err != nil {
		return err
	}
	r.recorded.Forget(client.ObjectKeyFromObject(pv))
	r.events.Eventf(pv, nil, corev1.EventTypeNormal, event.VolumeRecycled, "Recycle", "the data of volume %s is removed: it can be claimed again", pv.Name)
	return nil
}

// retryOrFail records, once, why a volume is not recycled yet. A problem that only a person
// can solve makes the volume Failed.
func (r *Recycler) retryOrFail(ctx context.Context, pv *corev1.PersistentVolume, err error) (ctrl.Result, error) {
	switch {
	case errors.Is(err, backend.Invalid):
		return ctrl.Result{}, r.fail(ctx, pv, err.Error())
	case errors.Is(err, uses.ErrKept):
		r.record(pv, corev1.EventTypeNormal, event.VolumeRecycle, err)
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	case errors.Is(err, backend.InProgress):
		r.record(pv, corev1.EventTypeNormal, event.VolumeRecycle, err)
		return ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	case errors.Is(err, backend.Queued):
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	r.record(pv, corev1.EventTypeWarning, event.VolumeFailedRecycle, err)
	return ctrl.Result{}, fmt.Errorf("recycling volume %s: %w", pv.Name, err)
}

// fail sets a volume to Failed: a person has to act.
func (r *Recycler) fail(ctx context.Context, pv *corev1.PersistentVolume, why string) error {
	message := why + ": remove its data by hand, then take spec.claimRef off the PersistentVolume, or delete it"
	if err := patch.SetPhase(ctx, r.client, pv, corev1.VolumeFailed, message); err != nil {
		return err
	}
	r.events.Eventf(pv, nil, corev1.EventTypeWarning, event.VolumeFailedRecycle, "Recycle", "%s", message)
	return nil
}
