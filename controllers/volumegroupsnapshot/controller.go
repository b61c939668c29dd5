// Package volumegroupsnapshot is the reconciler of VolumeGroupSnapshots, with scope=cluster and --bind-snapshots. It does what
// the stock snapshot-controller does, with the same annotations, finalizers, status and events: it makes the content of a
// VolumeGroupSnapshot, binds the two, and makes a VolumeSnapshot and a content of each member.
//
// It calls no storage: the reconciler of contents does, or the csi-snapshotter of a driver that Stowage doesn't serve. The
// reconciler of VolumeSnapshots copies the status of members, and lets them go after their group. The cache only shows that
// there is work: each decision is made on live reads, and each write is fenced by them.
package volumegroupsnapshot

import (
	"context"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/workers"
)

// bindWorkers is the number of concurrent reconciles.
const bindWorkers = 4

// Reconciler makes and binds the contents of VolumeGroupSnapshots, and their members.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	binder  *binder
	members *members
}

// New makes the reconciler. The claims are those of the reconciler of VolumeSnapshots, too.
func New(deps reconciler.Dependencies, claims *snapshotbinding.Claims) *Reconciler {
	members := &members{client: deps.Client, live: deps.Live}
	binding := &snapshotbinding.Binder{Claims: claims, Client: deps.Client, Live: deps.Live, Kind: kind, Events: deps.Events, Clock: deps.Clock}
	return &Reconciler{client: deps.Client, live: deps.Live, binder: &binder{binding, members}, members: members}
}

// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshots,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshots/status,verbs=patch
// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshotcontents,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=groupsnapshot.storage.k8s.io,resources=volumegroupsnapshotclasses,verbs=get;list
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots/status,verbs=patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotcontents/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch

// Reconcile brings one VolumeGroupSnapshot as far as possible now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if err := r.members.freeLost(ctx, request.NamespacedName); err != nil {
		return reconciler.AfterConflict(ctrl.Result{}, err)
	}
	group := &groupsnapshotv1.VolumeGroupSnapshot{}
	return reconciler.Pass{
		Kind: kind.Name, Object: group, Forget: r.binder.Forget,
		Settled: func() (bool, error) { return r.isSettled(ctx, group) },
		Execute: func() (ctrl.Result, error) { return r.execute(ctx, group) },
	}.Run(ctx, r.client, r.live, request)
}

func (r *Reconciler) execute(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) (ctrl.Result, error) {
	if !group.DeletionTimestamp.IsZero() {
		return r.binder.release(ctx, group)
	}
	err := r.binder.bind(ctx, group)
	return r.binder.Report(ctx, bindable(group), err)
}

// isSettled reports, from the cache, whether there is nothing to do for a VolumeGroupSnapshot.
func (r *Reconciler) isSettled(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) (bool, error) {
	switch {
	case !group.DeletionTimestamp.IsZero():
		return !controllerutil.ContainsFinalizer(group, snapshots.GroupBoundProtection), nil
	case !bindable(group).IsComplete():
		return false, nil
	}
	content := &groupsnapshotv1.VolumeGroupSnapshotContent{}
	found, err := r.binder.Find(ctx, r.client, bindable(group), content)
	if !found || !r.binder.IsTied(bindable(group), contentOf(content), snapshots.GroupBoundProtection) {
		return false, err
	}
	unadopted, err := r.members.unadopted(ctx, group, content)
	if err != nil || len(unadopted) > 0 {
		return false, err
	}
	has, err := r.binder.HasToRelease(ctx, group.UID, group.Namespace, "")
	return !has, err
}

// SetupWithManager watches VolumeGroupSnapshots, their contents and members, and the claims of which they are made. The API
// server has to serve VolumeSnapshots, too, and the cache to index them (index.AddSnapshots).
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumegroupsnapshot").
		For(&groupsnapshotv1.VolumeGroupSnapshot{}).
		Watches(&groupsnapshotv1.VolumeGroupSnapshotContent{}, handler.EnqueueRequestsFromMapFunc(groupOfContent)).
		Watches(&snapshotv1.VolumeSnapshot{}, handler.EnqueueRequestsFromMapFunc(r.groupsOfSnapshot)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.groupsOfClaim), newClaims()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers.Of(mgr, "volumegroupsnapshot", bindWorkers), CacheSyncTimeout: snapshots.SyncTimeout,
		}).
		Complete(effect.Reported[ctrl.Request](r))
}
