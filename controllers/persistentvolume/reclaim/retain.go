package reclaim

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// retain releases a deleted PersistentVolume without policy Delete: its data must stay. The
// backend records that first. Once the object is gone, nothing else distinguishes the data
// from an orphan, which an audit may remove.
func (r *Reclaimer) retain(ctx context.Context, pv *corev1.PersistentVolume) (ctrl.Result, error) {
	place, err := r.recordRetained(ctx, pv)
	switch {
	case errors.Is(err, backend.NotFound) || errors.Is(err, backend.Conflict):
		// There is nothing of ours that an audit could find.
		r.record(pv, corev1.EventTypeWarning, event.VolumeFailedRetain, err)
		return ctrl.Result{}, r.release(ctx, pv)
	case backend.Unfinished(err):
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	case err != nil:
		r.record(pv, corev1.EventTypeWarning, event.VolumeFailedRetain, fmt.Errorf("the volume is kept until its storage bears a note that its data is to be: %w", err))
		return ctrl.Result{}, fmt.Errorf("retaining the storage of volume %s: %w", pv.Name, err)
	}
	if err := r.release(ctx, pv); err != nil {
		return ctrl.Result{}, err
	}
	events := event.Since(pv.DeletionTimestamp.Time, r.events)
	events.Eventf(pv, nil, corev1.EventTypeNormal, event.VolumeRetained, "Delete", "the data of volume %s is kept: it lies in %s", pv.Name, place)
	return ctrl.Result{}, nil
}

// recordRetained makes the backend record that a volume is kept, and returns where its data is.
// A backend that cannot be opened audits nothing.
func (r *Reclaimer) recordRetained(ctx context.Context, pv *corev1.PersistentVolume) (place string, err error) {
	names := index.BackendOf(pv)
	if len(names) == 0 {
		return "no StorageBackend", nil
	}
	place = fmt.Sprintf("StorageBackend %s, as volume %s", names[0], pv.Spec.CSI.VolumeHandle)
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: names[0]}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return place, nil
		}
		return "", fmt.Errorf("reading StorageBackend %s: %w", names[0], err)
	}
	opened, err := r.open(pv, object)
	switch {
	case errors.Is(err, backend.Invalid):
		return place, nil
	case err != nil:
		return "", err
	}
	return backend.Retain(ctx, opened, pv.Spec.CSI.VolumeHandle)
}
