// Package audit compares what backends hold with what the cluster records. It finds volumes of
// deleted claims (orphans), and PersistentVolumes without storage. It writes the audit into
// the backend's status. It removes an orphan only if the backend allows it, after a waiting
// time and live reads.
package audit

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// defaultAuditInterval is the default in the API, for objects older than it.
	defaultAuditInterval = time.Hour
	// auditTimeout is how long a backend has to list one page.
	auditTimeout = 5 * time.Minute
	// audits is the number of concurrent reconciles.
	audits = 4
	// auditRetry is the delay before storage that did not answer is called again, and before
	// the next check whether a pod still uses an orphan.
	auditRetry = 5 * time.Minute
)

// Auditor compares what backends hold with what the cluster records, reports the difference,
// and removes orphans if the spec allows it. It is apart from the reconciler that probes,
// because a list may take minutes.
type Auditor struct {
	client  client.Client
	live    client.Reader
	storage *opener.Opener
	clock   clock.PassiveClock
	events  events.EventRecorder
	waking  wake.Source
	passes  auditPasses
	// failed and stuck have the last events about audits, and about removals.
	failed, stuck event.Last
}

// New makes the auditor.
func New(deps reconciler.Dependencies) *Auditor {
	return &Auditor{
		client:  deps.Client,
		live:    deps.Live,
		storage: deps.Storage,
		clock:   deps.Clock,
		events:  deps.Events,
	}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes;persistentvolumeclaims;pods,verbs=get;list;watch

// Reconcile audits one backend when it is due.
func (r *Auditor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.measure(object)
	if !object.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if left := untilAudit(object, r.clock.Now()); left > 0 {
		r.passes.end(object)
		return ctrl.Result{RequeueAfter: left}, nil
	}
	opened, err := r.storage.Open(object, func() { r.waking.Add(request.NamespacedName) })
	if err != nil {
		// The condition Accepted shows it, and a new spec wakes.
		return ctrl.Result{}, nil //nolint:nilerr // the reconciler that probes reports it
	}
	if _, can := backend.As[backend.Lister](opened); !can {
		return ctrl.Result{}, nil
	}
	pass, err := r.readPage(ctx, object, opened)
	if err != nil {
		return r.retryLater(object, err)
	}
	if pass.next != "" {
		return ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	}
	r.passes.end(object)
	found, err := r.compare(ctx, object, pass)
	if err != nil {
		return r.retryLater(object, err)
	}
	object, err = r.record(ctx, object, found)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	case err != nil || object == nil:
		return ctrl.Result{}, err
	}
	return r.removeOrphans(ctx, object, opened)
}

// untilAudit returns the time until the next audit. Orphans that are being removed make it due
// at once, also after a crash. A clock that was ahead delays nothing for longer than the
// interval.
func untilAudit(object *stowagev1alpha1.StorageBackend, now time.Time) time.Duration {
	last := object.Status.Audit
	if last == nil || len(removing(last.Orphans)) > 0 {
		return 0
	}
	interval := object.Spec.Audit.Interval.Duration
	if interval <= 0 {
		interval = defaultAuditInterval
	}
	return min(interval, last.Time.Add(interval).Sub(now))
}

// retryLater records, once, that an audit was not possible.
func (r *Auditor) retryLater(object *stowagev1alpha1.StorageBackend, err error) (ctrl.Result, error) {
	if r.failed.IsNews(client.ObjectKeyFromObject(object), err.Error()) {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, "AuditFailed", "Audit", "%v (tried again every %s)", err, auditRetry)
	}
	return ctrl.Result{RequeueAfter: auditRetry}, nil
}

// measure exports the last audit as metrics, even if another leader made it.
func (r *Auditor) measure(object *stowagev1alpha1.StorageBackend) {
	if r.storage.Metrics != nil && object.Status.Audit != nil {
		r.storage.Metrics.Audited(object.Name, ptr.Deref(object.Status.Orphans, 0), ptr.Deref(object.Status.LostVolumes, 0))
	}
}

func (r *Auditor) forget(name types.NamespacedName) {
	r.failed.Forget(name)
	r.stuck.Forget(name)
	r.passes.forget(name)
	if r.storage.Metrics != nil {
		r.storage.Metrics.Forget(name.Name)
	}
}

// SetupWithManager watches backends. Everything else is read when an audit is due.
func (r *Auditor) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("storagebackend-audit").
		For(&stowagev1alpha1.StorageBackend{}, wake.OnlyNewBackends()).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: audits}).
		Complete(r)
}
