// Package volumeattachment is the reconciler of VolumeAttachments of the drivers that Stowage
// serves. It attaches and detaches through backends. It also compares what backends report as attached
// with what is recorded (Comparer).
//
// It writes attachments and their status. It records the backend, the volume and the machine
// before the attach. If one node at a time can have a volume, the oldest attachment comes
// first. It never decides which node gets a volume: package node does.
package volumeattachment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/workers"
)

// attachmentWorkers is the number of concurrent reconciles.
const attachmentWorkers = 128

// Reconciler carries out the VolumeAttachments of the drivers that Stowage serves, in both scopes. It
// attaches volumes to nodes and, once the node has released them, detaches them. The node
// reconciler, or kube-controller-manager, decides what is attached where: it creates and
// deletes the attachments.
type Reconciler struct {
	client   client.Client
	drivers  drivers.Drivers
	attacher *attacher
	detacher *detacher
	report   *reporter
	waking   *wake.Source
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	report, waking, missing := newReporter(deps), &wake.Source{}, &wake.Instants{}
	backends := backends{client: deps.Client, storage: deps.Storage, waking: waking}
	return &Reconciler{
		client: deps.Client, drivers: drivers.New(deps.Client), report: report, waking: waking,
		attacher: newAttacher(deps, backends, report, missing), detacher: newDetacher(deps, backends, report, missing),
	}
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csinodes,verbs=get

// Reconcile brings one attachment as far as possible now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	attachment := &storagev1.VolumeAttachment{}
	if err := r.client.Get(ctx, request.NamespacedName, attachment); err != nil {
		if apierrors.IsNotFound(err) {
			r.report.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if served, err := r.drivers.Serves(ctx, attachment.Spec.Attacher); !served || err != nil {
		return ctrl.Result{}, err
	}
	execute := r.attacher.attach
	if !attachment.DeletionTimestamp.IsZero() {
		execute = r.detacher.detach
	}
	return reconciler.AfterConflict(execute(ctx, attachment))
}

// SetupWithManager watches attachments and what they wait for.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	watches := watches{r.client, r.drivers, &r.report.refused}
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumeattachment").
		For(&storagev1.VolumeAttachment{}, builder.WithPredicates(ExceptOwnErrors)).
		Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(watches.othersOfVolume), builder.WithPredicates(wake.OnlyDeletions)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(watches.attachmentsOfVolume), builder.WithPredicates(onlyNewStates, wake.NotAtStart)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(watches.attachmentsOfNode), builder.WithPredicates(attachintent.OnlyNewUse)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(watches.attachmentsOfBackend), wake.OnlyNewSpecs()).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers.Of(mgr, workers.Attachments, attachmentWorkers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](attachBackoff, attachBackoffMax),
		}).
		Complete(effect.Reported[ctrl.Request](r))
}
