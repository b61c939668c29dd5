// Package comparison compares what backends report as attached with the VolumeAttachments. It
// sets the attachments of volumes that were detached elsewhere to detached. It detaches
// dangling ones, which have no VolumeAttachment, after live reads and a waiting time.
package comparison

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// comparisons is the number of concurrent reconciles.
	comparisons = 4
	// defaultAttachmentCheck is the default interval of comparisons.
	defaultAttachmentCheck = time.Minute
	// attachmentCheckTimeout is how long a backend has to list its attachments.
	attachmentCheckTimeout = time.Minute
)

// Comparer compares the attachments in a backend with the VolumeAttachments. A volume that was
// detached elsewhere is attached again. A dangling attachment gets an event, and is detached
// once its node has released it.
type Comparer struct {
	client   client.Client
	live     client.Reader
	shared   liveread.Reads
	storage  *opener.Opener
	interval time.Duration
	clock    clock.PassiveClock
	events   events.EventRecorder
	// failed has the last events about failed comparisons.
	failed event.Last

	mu sync.Mutex
	// seen is since when dangling attachments are seen, by backend.
	seen map[string]map[backend.Attached]firstSeen
}

// New makes the comparer.
func New(deps reconciler.Dependencies) *Comparer {
	interval := deps.AttachmentCheckInterval
	if interval <= 0 {
		interval = defaultAttachmentCheck
	}
	return &Comparer{
		client:   deps.Client,
		live:     deps.Live,
		shared:   deps.Reads,
		storage:  deps.Storage,
		interval: interval,
		clock:    deps.Clock,
		events:   deps.Events,
	}
}

// Reconcile compares the attachments of one backend, and repeats that after the interval.
func (r *Comparer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.failed.Forget(request.NamespacedName)
			r.markSeen(request.Name, nil)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	opened, err := r.storage.Open(object, func() {})
	if err != nil {
		// The condition Accepted shows it, and a new spec wakes.
		return ctrl.Result{}, nil //nolint:nilerr // the reconciler that probes reports it
	}
	lister, can := backend.As[backend.AttachmentLister](opened)
	if !can {
		return ctrl.Result{}, nil
	}
	if err := r.compare(ctx, object, lister); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.interval}, nil
}

// compare finds the differences. It reads the recorded attachments before the call of the backend,
// and the requested ones after it. A change between the two lists is in neither difference.
func (r *Comparer) compare(ctx context.Context, object *stowagev1alpha1.StorageBackend, lister backend.AttachmentLister) error {
	recorded, err := r.recorded(ctx, object)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, attachmentCheckTimeout)
	defer cancel()
	listed, err := lister.Attachments(bounded)
	key := client.ObjectKeyFromObject(object)
	if err != nil {
		if r.failed.IsNew(key, err.Error()) {
			r.events.Eventf(object, nil, corev1.EventTypeWarning, event.AttachmentCheckFailed, "Compare", "listing what is attached: %v", err)
		}
		return nil
	}
	r.failed.Forget(key)
	for _, missing := range recorded {
		if isListed(listed, missing) || r.mayBeAttached(bounded, object, missing) {
			continue
		}
		if err := r.repair(ctx, missing); err != nil {
			return err
		}
	}
	return r.detachDangling(ctx, object, listed)
}

// mayBeAttached queries the backend by name for a volume that its list does not show: the
// labels that the list uses may have been replaced. On an error, the next comparison repeats
// it.
func (r *Comparer) mayBeAttached(ctx context.Context, object *stowagev1alpha1.StorageBackend, missing recordedAttachment) bool {
	opened, err := r.storage.Direct(object)
	if err != nil {
		return true
	}
	attacher, err := attachintent.AttacherOf(opened, object.Name)
	if err != nil {
		return true
	}
	node := attachintent.MachineOf(missing.VolumeAttachment, missing.intent)
	is, err := attacher.IsAttached(ctx, missing.intent.Volume, node)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("it is unknown whether the volume is attached", "attachment", missing.Name, "why", err.Error())
	}
	return is || err != nil
}

// recordedAttachment is an attachment with status.attached.
type recordedAttachment struct {
	*storagev1.VolumeAttachment
	pv     *corev1.PersistentVolume
	intent *attachintent.Intent
}

// recorded returns the attachments of a backend's volumes with status.attached that are not
// being deleted.
func (r *Comparer) recorded(ctx context.Context, object *stowagev1alpha1.StorageBackend) ([]recordedAttachment, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := r.client.List(ctx, attachments); err != nil {
		return nil, fmt.Errorf("listing the attachments: %w", err)
	}
	var found []recordedAttachment
	for i := range attachments.Items {
		attachment := &attachments.Items[i]
		if attachment.Spec.Attacher != backend.DriverOf(object) || !attachment.Status.Attached || !attachment.DeletionTimestamp.IsZero() {
			continue
		}
		pv := r.volumeOf(ctx, attachment)
		// A backend never lists existing disks: their absence from the list shows nothing.
		if intent, err := volumeattachment.VerifiedIntent(attachment, pv); err == nil && intent.Backend == object.Name && !volume.IsDiskPath(intent.Volume) {
			found = append(found, recordedAttachment{attachment, pv, intent})
		}
	}
	return found, nil
}

// volumeOf returns the PersistentVolume of an attachment from the cache, or nil.
func (r *Comparer) volumeOf(ctx context.Context, attachment *storagev1.VolumeAttachment) *corev1.PersistentVolume {
	for _, name := range index.AttachmentVolume(attachment) {
		pv := &corev1.PersistentVolume{}
		if r.client.Get(ctx, client.ObjectKey{Name: name}, pv, client.UnsafeDisableDeepCopy) == nil {
			return pv
		}
	}
	return nil
}

// isListed reports whether a backend lists a recorded attachment. If its machine is unknown, any
// machine counts.
func isListed(listed []backend.Attached, recorded recordedAttachment) bool {
	instance := attachintent.InstanceOf(recorded.VolumeAttachment, recorded.intent)
	return slices.ContainsFunc(listed, func(attached backend.Attached) bool {
		return attached.ID == recorded.intent.Volume && (instance == "" || attached.ProviderID == instance)
	})
}

// repair clears status.attached: the reconciler of the attachment attaches it again. Any
// change since the attachment was read prevents this write.
func (r *Comparer) repair(ctx context.Context, missing recordedAttachment) error {
	current := &storagev1.VolumeAttachment{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(missing), current); err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "reading attachment %s", missing.Name)
	}
	if current.ResourceVersion != missing.ResourceVersion {
		return nil
	}
	const message = "the volume was detached outside of Stowage, and is attached again"
	before := current.DeepCopy()
	current.Status.Attached = false
	current.Status.AttachError = &storagev1.VolumeError{Time: volumeattachment.NewVolumeError(backend.Conflict, r.clock.Now()).Time, Message: message}
	err := r.client.Status().Patch(ctx, current, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "setting attachment %s to detached", missing.Name)
	}
	r.events.Eventf(current, nil, corev1.EventTypeWarning, event.VolumeDetachedElsewhere, "Compare", "node %s: %s", current.Spec.NodeName, message)
	if missing.pv != nil {
		event.Unlogged(r.events).Eventf(missing.pv, nil, corev1.EventTypeWarning, event.VolumeDetachedElsewhere, "Compare", "node %s: %s", current.Spec.NodeName, message)
	}
	return nil
}

// SetupWithManager watches backends. Everything else is read when a comparison is due.
func (r *Comparer) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumeattachment-compare").
		For(&stowagev1alpha1.StorageBackend{}, wake.OnlyNewBackends()).
		WithOptions(controller.Options{MaxConcurrentReconciles: comparisons}).
		Complete(effect.Reported[ctrl.Request](r))
}
