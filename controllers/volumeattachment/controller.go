// Package volumeattachment is the reconciler of VolumeAttachments of Stowage's drivers. It
// attaches and detaches through backends. It also compares what backends report as attached
// with what is recorded (Comparer).
//
// It writes attachments and their status. It records the backend, the volume and the machine
// before the attach. If one node at a time can have a volume, the oldest attachment comes
// first. It never decides which node gets a volume: package node does.
package volumeattachment

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
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
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// attachmentWorkers is the number of concurrent reconciles.
	attachmentWorkers = 128
	// attachBackoff is the first delay of a retry, and attachBackoffMax the last: a pod waits
	// for it.
	attachBackoff    = 500 * time.Millisecond
	attachBackoffMax = time.Minute
)

// Reconciler carries out the VolumeAttachments of Stowage's drivers, in both scopes. It
// attaches volumes to nodes and, once the node has released them, detaches them. The node
// reconciler, or kube-controller-manager, decides what is attached where: it creates and
// deletes the attachments.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	shared   liveread.Reads
	storage  *opener.Opener
	waking   wake.Source
	clock    clock.PassiveClock
	events   events.EventRecorder
	recorded event.Last
	// forced are the attachments with an event about a detach by force.
	forced event.Last
	// refused is since when calls fail with an error that is usually short, and unfinished
	// since when work is in flight, by attachment.
	refused, unfinished wake.Instants
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	return &Reconciler{
		client:  deps.Client,
		live:    deps.Live,
		shared:  deps.Reads,
		storage: deps.Storage,
		clock:   deps.Clock,
		events:  deps.Events,
	}
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch

// Reconcile brings one attachment as far as possible now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	attachment := &storagev1.VolumeAttachment{}
	if err := r.client.Get(ctx, request.NamespacedName, attachment); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !backend.IsOurs(attachment.Spec.Attacher) {
		return ctrl.Result{}, nil
	}
	bring := r.attach
	if !attachment.DeletionTimestamp.IsZero() {
		bring = r.detach
	}
	result, err := bring(ctx, attachment)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: wake.AfterConflict}, nil
	}
	return result, err
}

// openFor opens a backend for calls that an attachment waits for.
func (r *Reconciler) openFor(attachment *storagev1.VolumeAttachment, object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	key := client.ObjectKeyFromObject(attachment)
	return r.storage.Open(object, func() { r.waking.Add(key) })
}

// SetupWithManager watches attachments and what they wait for.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumeattachment").
		For(&storagev1.VolumeAttachment{}, builder.WithPredicates(ExceptOwnWords)).
		Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(r.othersOfVolume), builder.WithPredicates(wake.OnlyEnds)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(r.attachmentsOfVolume), builder.WithPredicates(onlyNewStates)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.attachmentsOfNode), builder.WithPredicates(attachintent.OnlyNewUse)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.attachmentsOfBackend), wake.OnlyNewSpecs()).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: attachmentWorkers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](attachBackoff, attachBackoffMax),
		}).
		Complete(r)
}
