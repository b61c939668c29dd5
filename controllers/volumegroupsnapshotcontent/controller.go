// Package volumegroupsnapshotcontent is the reconciler of VolumeGroupSnapshotContents of the CSI drivers that Stowage
// serves. It does for them what csi-snapshotter does for other drivers, with the same annotations, finalizer and status:
// it makes, finds and deletes snapshots that several volumes have of one time.
//
// The stock snapshot-controller makes and binds these contents. From their status it makes a VolumeSnapshot and a
// content for each member, and the reconciler of VolumeSnapshotContents serves those. The cache only shows that there is
// work: each decision is made on a live read, and each write is fenced by it.
package volumegroupsnapshotcontent

import (
	"context"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/snapshotcontent"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/workers"
)

// groupWorkers is the number of concurrent reconciles.
const groupWorkers = 4

// Reconciler makes and deletes the group snapshots of VolumeGroupSnapshotContents.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	drivers  drivers.Drivers
	maker    *maker
	releaser *releaser
	report   *reporter
	waking   *wake.Source
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	waking, report := &wake.Source{}, &reporter{snapshotcontent.Reporter{Client: deps.Client, Events: deps.Events, Clock: deps.Clock}}
	targets := targets{client: deps.Client, live: deps.Live, storage: deps.Storage, namespace: deps.Namespace, waking: waking}
	return &Reconciler{
		client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client), waking: waking, report: report,
		maker:    &maker{client: deps.Client, targets: targets, report: report},
		releaser: &releaser{client: deps.Client, live: deps.Live, targets: targets, report: report},
	}
}

// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshotcontents,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshotcontents/status,verbs=patch
// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshotclasses,verbs=get
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=list
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch

// Reconcile brings one content as far as possible now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	content := &groupsnapshotv1.VolumeGroupSnapshotContent{}
	return reconciler.Pass{
		Kind: "VolumeGroupSnapshotContent", Object: content, Forget: r.report.Last.Forget,
		Settled: func() (bool, error) {
			if isSettled(content) {
				return true, nil
			}
			served, err := r.drivers.Serves(ctx, content.Spec.Driver)
			return !served, err
		},
		Execute: func() (ctrl.Result, error) { return r.execute(ctx, content) },
	}.Run(ctx, r.client, r.live, request)
}

// execute does what a content asks for now.
func (r *Reconciler) execute(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (ctrl.Result, error) {
	switch {
	case mayRelease(content):
		return r.releaser.release(ctx, content)
	case isSettled(content):
		return ctrl.Result{}, nil
	case isReady(content):
		// A crash came between the write of the status and this one.
		return ctrl.Result{}, r.maker.removeBeingCreated(ctx, content)
	case known(content) != "":
		// No call makes it any more: the storage may have lost it, and would make another one, of another time.
		return r.maker.look(ctx, content)
	default:
		return r.maker.create(ctx, content)
	}
}

// SetupWithManager watches contents, and backends that change.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumegroupsnapshotcontent").
		For(&groupsnapshotv1.VolumeGroupSnapshotContent{}, builder.WithPredicates(byOthers())).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.unsettled), wake.OnlyNewSpecs()).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers.Of(mgr, "volumegroupsnapshotcontent", groupWorkers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](snapshots.Backoff, snapshots.BackoffMax),
			CacheSyncTimeout:        snapshots.SyncTimeout,
		}).
		Complete(effect.Reported[ctrl.Request](r))
}
