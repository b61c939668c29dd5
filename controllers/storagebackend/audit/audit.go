// Package audit compares what backends hold with what the cluster records. It finds volumes of
// deleted claims and snapshots without a content (orphans), and PersistentVolumes without storage. It writes the audit into
// the backend's status. It removes an orphan only if the backend allows it, after a waiting
// time and live reads.
package audit

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
)

// audits is the number of concurrent reconciles.
const audits = 4

// Auditor compares what backends hold with what the cluster records, reports the difference,
// and removes orphans if the spec allows it. It is apart from the reconciler that probes,
// because a list may take minutes.
type Auditor struct {
	client    client.Client
	storage   *opener.Opener
	clock     clock.PassiveClock
	waking    wake.Source
	lister    *lister
	inspector *inspector
	recorder  *recorder
	remover   *remover
}

// New makes the auditor.
func New(deps reconciler.Dependencies) *Auditor {
	return &Auditor{
		client: deps.Client, storage: deps.Storage, clock: deps.Clock,
		inspector: &inspector{client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client), events: deps.Events},
		lister:    &lister{client: deps.Client, live: deps.Live, clock: deps.Clock},
		recorder:  &recorder{client: deps.Client, live: deps.Live, clock: deps.Clock, events: deps.Events, metrics: deps.Storage.Metrics},
		remover:   &remover{live: deps.Live, clock: deps.Clock, events: deps.Events},
	}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes;persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=list;watch

// Reconcile audits one backend when it is due.
func (r *Auditor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.recorder.measure(object)
	if !object.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if left := untilAudit(object, r.clock.Now()); left > 0 {
		r.lister.end(object)
		return ctrl.Result{RequeueAfter: left}, nil
	}
	opened, err := r.storage.Open(object, func() { r.waking.Add(request.NamespacedName) })
	if err != nil {
		// The condition Accepted shows it, and a new spec wakes.
		return ctrl.Result{}, nil //nolint:nilerr // the reconciler that probes reports it
	}
	if with, can := backend.As[backend.Inspector](opened); can {
		return r.inspect(ctx, object, with)
	}
	if _, can := backend.As[backend.Lister](opened); !can {
		return ctrl.Result{}, nil
	}
	pass, err := r.lister.readPage(ctx, object, opened)
	if err != nil {
		return r.recorder.recordFailure(object, err)
	}
	if pass.next != "" {
		return ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	}
	r.lister.end(object)
	found, err := r.lister.compare(ctx, object, pass)
	if err != nil {
		return r.recorder.recordFailure(object, err)
	}
	object, err = r.recorder.record(ctx, object, found)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	case err != nil || object == nil:
		return ctrl.Result{}, err
	}
	return r.remover.removeOrphans(ctx, object, opened)
}

// inspect audits a backend that can't list what is this cluster's.
func (r *Auditor) inspect(ctx context.Context, object *stowagev1alpha1.StorageBackend, with backend.Inspector) (ctrl.Result, error) {
	found, err := r.inspector.inspect(ctx, object, with)
	if err != nil {
		return r.recorder.recordFailure(object, err)
	}
	after, err := r.recorder.record(ctx, object, found)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	case err != nil || after == nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: untilAudit(after, r.clock.Now())}, nil
}

func (r *Auditor) forget(name types.NamespacedName) {
	r.recorder.failed.Forget(name)
	r.remover.failed.Forget(name)
	r.lister.passes.forget(name)
	r.inspector.forget(name)
	r.storage.Forget(name.Name)
}

// SetupWithManager watches backends. Everything else is read when an audit is due.
func (r *Auditor) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("storagebackend-audit").
		For(&stowagev1alpha1.StorageBackend{}, wake.OnlyNewBackends()).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: audits}).
		Complete(effect.Reported[ctrl.Request](r))
}
