// Package volumesnapshot is the reconciler of VolumeSnapshots, with scope=cluster and --bind-snapshots. It does what the
// stock snapshot-controller does, for all drivers, with the same annotations, finalizers, status and events: it makes the
// content of a VolumeSnapshot, binds the two, and protects claims and VolumeSnapshots that are in use.
//
// It calls no storage: the reconciler of contents does, or the csi-snapshotter of a driver that Stowage doesn't serve. The cache
// only shows that there is work: each decision is made on live reads, and each write is fenced by them. The reconciler
// of VolumeGroupSnapshots makes VolumeSnapshots of groups, and binds them. They are kept as long as it says.
package volumesnapshot

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/workers"
)

// snapshotWorkers is the number of concurrent reconciles.
const snapshotWorkers = 16

// Reconciler makes and binds the contents of VolumeSnapshots.
type Reconciler struct {
	client client.Client
	live   client.Reader
	binder *binder
}

// New makes the reconciler. The claims are those of the reconciler of groups, too.
func New(deps reconciler.Dependencies, claims *snapshotbinding.Claims) *Reconciler {
	binding := &snapshotbinding.Binder{Claims: claims, Client: deps.Client, Live: deps.Live, Kind: kind, Events: deps.Events, Clock: deps.Clock}
	return &Reconciler{client: deps.Client, live: deps.Live, binder: &binder{binding}}
}

// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots/status,verbs=patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotclasses,verbs=get;list
// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshots,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get

// Reconcile brings one VolumeSnapshot as far as possible now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	snapshot := &snapshotv1.VolumeSnapshot{}
	return reconciler.Pass{
		Kind: kind.Name, Object: snapshot, Forget: r.binder.Forget,
		Settled: func() (bool, error) { return r.isSettled(ctx, snapshot) },
		Execute: func() (ctrl.Result, error) { return r.execute(ctx, snapshot) },
	}.Run(ctx, r.client, r.live, request)
}

func (r *Reconciler) execute(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (ctrl.Result, error) {
	switch {
	case isUnboundMember(snapshot):
		return ctrl.Result{}, nil
	case !snapshot.DeletionTimestamp.IsZero():
		return r.binder.release(ctx, snapshot)
	}
	err := r.binder.bind(ctx, snapshot)
	return r.binder.Report(ctx, bindable(snapshot), err)
}

// isSettled reports, from the cache, whether there is nothing to do for a VolumeSnapshot.
func (r *Reconciler) isSettled(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (bool, error) {
	switch {
	case isUnboundMember(snapshot):
		return true, nil
	case !snapshot.DeletionTimestamp.IsZero():
		return !snapshots.IsProtected(snapshot), nil
	case !bindable(snapshot).IsComplete():
		return false, nil
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	found, err := r.binder.Find(ctx, r.client, bindable(snapshot), content)
	if !found || !r.binder.IsTied(bindable(snapshot), contentOf(content), finalizers(snapshot, content.Spec.DeletionPolicy)...) {
		return false, err
	}
	name := snapshots.SourceClaim(snapshot)
	if name == "" {
		return true, nil
	}
	has, err := r.binder.HasToRelease(ctx, snapshot.UID, snapshot.Namespace, name)
	return !has, err
}

// SetupWithManager watches VolumeSnapshots, their contents, the claims that they are made of, and those that are
// restored from them. The API server has to serve VolumeSnapshots, and the cache to index them (index.AddSnapshots).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumesnapshot").
		For(&snapshotv1.VolumeSnapshot{}).
		Watches(&snapshotv1.VolumeSnapshotContent{}, handler.EnqueueRequestsFromMapFunc(snapshotOfContent)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.snapshotsOfClaim), newClaims()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers.Of(mgr, "volumesnapshot", snapshotWorkers), CacheSyncTimeout: snapshots.SyncTimeout,
		}).
		Complete(effect.Reported[ctrl.Request](r))
}
