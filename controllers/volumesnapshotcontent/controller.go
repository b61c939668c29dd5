// Package volumesnapshotcontent is the reconciler of VolumeSnapshotContents of the drivers that
// Stowage serves. It does for them what csi-snapshotter does for other drivers, with the same
// annotations, finalizer and status: it makes, finds and deletes snapshots.
//
// The stock snapshot-controller, or the reconciler of VolumeSnapshots, makes and binds the contents, and
// says by an annotation that a snapshot is deleted. Nothing here reads or writes VolumeSnapshots. The cache only
// shows that there is work: each decision is made on a live read, and each write is fenced by it.
package volumesnapshotcontent

import (
	"context"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
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
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/snapshotcontent"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/workers"
)

// snapshotWorkers is the number of concurrent reconciles.
const snapshotWorkers = 16

// Reconciler makes and deletes the snapshots of VolumeSnapshotContents.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	drivers  drivers.Drivers
	maker    *maker
	releaser *releaser
	windows  windows
	report   *reporter
	storage  *opener.Opener
	waking   *wake.Source
	// others are drivers of Stowage's own that csi-snapshotter serves.
	others []string
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	waking, report := &wake.Source{}, &reporter{snapshotcontent.Reporter{Client: deps.Client, Events: deps.Events, Clock: deps.Clock}}
	targets := targets{backends: backends{deps.Client}, live: deps.Live, storage: deps.Storage, namespace: deps.Namespace, waking: waking}
	windows := windows{client: deps.Client, backends: deps.Reads.Backends, targets: targets, report: report, clock: deps.Clock}
	return &Reconciler{
		client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client), storage: deps.Storage, waking: waking, report: report, windows: windows, others: deps.CSISnapshotter,
		maker:    &maker{client: deps.Client, targets: targets, report: report},
		releaser: &releaser{client: deps.Client, contents: sharedContents(deps.Live), targets: targets, windows: windows, report: report},
	}
}

// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents/status,verbs=patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotclasses,verbs=get
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends;nodevolumes,verbs=get;list;watch

// Reconcile brings one content as far as possible now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	content := &snapshotv1.VolumeSnapshotContent{}
	return reconciler.Pass{
		Kind: "VolumeSnapshotContent", Object: content, Forget: r.report.Last.Forget,
		Settled: func() (bool, error) {
			if isSettled(content) && backendOfWindow(content) == "" {
				return true, nil
			}
			served, err := r.drivers.Serves(ctx, content.Spec.Driver)
			return !served, err
		},
		Execute: func() (ctrl.Result, error) { return r.keepOrExecute(ctx, content) },
	}.Run(ctx, r.client, r.live, request)
}

// keepOrExecute also keeps a content for the undelete window, and deletes it then.
func (r *Reconciler) keepOrExecute(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (ctrl.Result, error) {
	if slices.Contains(r.others, content.Spec.Driver) && !snapshots.IsBegun(content) {
		return ctrl.Result{}, nil
	}
	if wasUndeletable(content) {
		return ctrl.Result{}, r.windows.forget(ctx, content)
	}
	if !isUndeletable(content) {
		return r.execute(ctx, content)
	}
	left, err := r.windows.left(ctx, content)
	switch {
	case err != nil:
		return r.report.Unreleased(servable(content), err)
	case left <= 0:
		return r.windows.end(ctx, content)
	}
	result, err := r.execute(ctx, content)
	if result.RequeueAfter == 0 {
		result.RequeueAfter = left
	}
	result.RequeueAfter = min(result.RequeueAfter, left)
	return result, err
}

// execute does what a content asks for now.
func (r *Reconciler) execute(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (ctrl.Result, error) {
	switch {
	case mayRelease(content):
		return r.releaser.release(ctx, content)
	case isSettled(content):
		return ctrl.Result{}, nil
	case isReady(content):
		// A crash came between the write of the status and this one.
		return ctrl.Result{}, r.maker.endCall(ctx, content, true)
	case content.Spec.Source.SnapshotHandle != nil || snapshots.IsContentInGroup(content) || named.IsSnapshot(recorded(content)):
		return r.maker.find(ctx, content)
	default:
		return r.maker.create(ctx, content)
	}
}

// SetupWithManager watches contents, backends that change, and the NodeVolumes of snapshots.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumesnapshotcontent").
		For(&snapshotv1.VolumeSnapshotContent{}, builder.WithPredicates(byOthers())).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.unsettled), wake.OnlyNewSpecs()).
		Watches(&stowagev1alpha1.NodeVolume{}, handler.EnqueueRequestsFromMapFunc(r.contentsOfNodeVolume)).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers.Of(mgr, "volumesnapshotcontent", snapshotWorkers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](snapshots.Backoff, snapshots.BackoffMax),
			CacheSyncTimeout:        snapshots.SyncTimeout,
		}).
		Complete(effect.Reported[ctrl.Request](r))
}
