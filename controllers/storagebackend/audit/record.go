package audit

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// auditRetry is the delay before storage that did not answer is called again, and before the
// next check whether a pod still uses an orphan.
const auditRetry = 5 * time.Minute

// recorder writes findings to the status of backends, and records events about them.
type recorder struct {
	client  client.Client
	live    client.Reader
	clock   clock.PassiveClock
	events  events.EventRecorder
	metrics *metrics.Metrics
	// failed has the last events about audits.
	failed event.Last
}

// record writes the findings to the backend's status, with the version of a live read. So of
// two auditors one writes, and the current spec decides what is removed. It returns nil if the
// backend is deleted, or is being deleted.
func (r *recorder) record(ctx context.Context, audited *stowagev1alpha1.StorageBackend, found findings) (*stowagev1alpha1.StorageBackend, error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(audited), object); err != nil {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading StorageBackend %s", audited.Name)
	}
	if object.UID != audited.UID || !object.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	before := object.DeepCopy()
	object.Status.Orphans, object.Status.LostVolumes = found.counts()
	object.Status.Audit = auditStatus(object, found, metav1.NewTime(r.clock.Now()).Rfc3339Copy())
	if !equality.Semantic.DeepEqual(before.Status, object.Status) {
		err := r.client.Status().Patch(ctx, object, patch.Fenced(before))
		if err != nil {
			return nil, fmt.Errorf("writing what an audit of StorageBackend %s found: %w", object.Name, err)
		}
	}
	r.failed.Forget(client.ObjectKeyFromObject(object))
	r.measure(object)
	r.recordFindings(before, object)
	r.recordRemovals(before, object, found.held)
	return object, nil
}

// measure exports the last audit as metrics, even if another leader made it.
func (r *recorder) measure(object *stowagev1alpha1.StorageBackend) {
	if r.metrics != nil && object.Status.Audit != nil {
		r.metrics.Audited(object.Name, ptr.Deref(object.Status.Orphans, 0), ptr.Deref(object.Status.LostVolumes, 0))
	}
}

// recordFindings records events about findings that are new.
func (r *recorder) recordFindings(before, after *stowagev1alpha1.StorageBackend) {
	last := before.Status.Audit
	if last == nil {
		last = &stowagev1alpha1.AuditStatus{}
	}
	if n := ptr.Deref(after.Status.Orphans, 0); isNews(n, before.Status.Orphans, idsOf(last.Orphans), idsOf(after.Status.Audit.Orphans)) {
		r.events.Eventf(after, nil, corev1.EventTypeWarning, event.OrphansFound, "Audit",
			"no object records what is held as %s: status.audit names its claim or VolumeSnapshot", someOf(n, idsOf(after.Status.Audit.Orphans)))
	}
	if n := ptr.Deref(after.Status.LostVolumes, 0); isNews(n, before.Status.LostVolumes, last.LostVolumes, after.Status.Audit.LostVolumes) {
		r.events.Eventf(after, nil, corev1.EventTypeWarning, event.VolumesLost, "Audit",
			"no storage is found of %s: see that its disks or its server are there; if the data is gone for good, restore it, "+
				"or delete the claims and the volumes", someOf(n, after.Status.Audit.LostVolumes))
	}
}

// recordRemovals records events about orphans that were being removed, and are gone.
func (r *recorder) recordRemovals(before, after *stowagev1alpha1.StorageBackend, held map[string]bool) {
	if before.Status.Audit == nil {
		return
	}
	for _, orphan := range removing(before.Status.Audit.Orphans) {
		if !held[orphan.ID] {
			r.events.Eventf(after, nil, corev1.EventTypeNormal, event.OrphanRemoved, "Audit",
				"%s, which was made for claim %s/%s, isn't held any more", orphan.ID, orphan.ClaimNamespace, orphan.ClaimName)
		}
	}
}

// recordFailure records, once, that an audit was not possible, and returns when to retry.
func (r *recorder) recordFailure(object *stowagev1alpha1.StorageBackend, err error) (ctrl.Result, error) {
	if r.failed.IsNew(client.ObjectKeyFromObject(object), err.Error()) {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, event.AuditFailed, "Audit", "%v (tried again every %s)", err, auditRetry)
	}
	return ctrl.Result{RequeueAfter: auditRetry}, nil
}
