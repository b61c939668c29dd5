package audit

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
)

// remover removes orphans.
type remover struct {
	live   client.Reader
	clock  clock.PassiveClock
	events events.EventRecorder
	// failed has the last events about removals.
	failed event.Last
}

// removeOrphans removes the orphans that the status marks as being removed. The mark was
// written before, and the cluster is read again, live, after that write. A
// PersistentVolume for such storage that exists before the read keeps the storage. Before a
// later one is created, its creator can read the mark. Ids are never reused, so two auditors
// remove nothing that one of them would not.
func (r *remover) removeOrphans(ctx context.Context, object *stowagev1alpha1.StorageBackend, opened backend.Backend) (ctrl.Result, error) {
	due := removing(object.Status.Audit.Orphans)
	if len(due) == 0 {
		return ctrl.Result{RequeueAfter: untilAudit(object, r.clock.Now())}, nil
	}
	now, err := readRecords(ctx, r.live, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	result := ctrl.Result{RequeueAfter: wake.AfterContention}
	var failures []error
	for _, orphan := range due {
		held := HeldAs(orphan)
		if now.hasRecord(held) || !removable(held, now.live) {
			continue
		}
		switch err := r.removeOrphan(ctx, opened, held); {
		case err == nil:
		case errors.Is(err, uses.ErrKept):
			result.RequeueAfter = max(result.RequeueAfter, auditRetry)
		case backend.Unfinished(err):
			result.RequeueAfter = max(result.RequeueAfter, wake.WithoutAnswer)
		default:
			failures = append(failures, fmt.Errorf("removing orphan %s: %w", orphan.ID, err))
		}
	}
	if len(failures) > 0 {
		return ctrl.Result{}, r.failRemoval(object, errors.Join(failures...))
	}
	r.failed.Forget(client.ObjectKeyFromObject(object))
	return result, nil
}

func (r *remover) removeOrphan(ctx context.Context, opened backend.Backend, held backend.Held) error {
	used, err := uses.UsedByPod(ctx, r.live, held.Claim, uses.HasEnded)
	switch {
	case err != nil:
		return err
	case used:
		return uses.ErrKept
	}
	return opened.Delete(ctx, held.ID)
}

// failRemoval records, once, why orphans are still there, and returns the error, so that it is
// retried with backoff.
func (r *remover) failRemoval(object *stowagev1alpha1.StorageBackend, err error) error {
	if r.failed.IsNew(client.ObjectKeyFromObject(object), err.Error()) {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, event.OrphanNotRemoved, "Audit", "%v", err)
	}
	return err
}
