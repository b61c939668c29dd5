package volumeattachment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// leaving is the state of one detach.
type leaving struct {
	attachment *storagev1.VolumeAttachment
	// pv is nil if the PersistentVolume is gone.
	pv *corev1.PersistentVolume
	// from is the machine that it may be attached to, volume its id in the backend.
	from   backend.NodeIdentity
	volume string
	object *stowagev1alpha1.StorageBackend
	opened backend.Backend
	// refused is the error of the backend's call.
	refused error
}

// detach detaches a volume from a node, once that is safe, and then removes the finalizer of
// its attachment: the last write. It reads the attachment live: one of the same name may have
// been created and attached since the cache was updated.
func (r *Reconciler) detach(ctx context.Context, cached *storagev1.VolumeAttachment) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(cached, attachintent.Finalizer(cached.Spec.Attacher)) {
		return ctrl.Result{}, nil
	}
	attachment := &storagev1.VolumeAttachment{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(cached), attachment); err != nil {
		return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "reading attachment %s", cached.Name)
	}
	switch {
	case attachment.UID != cached.UID || !controllerutil.ContainsFinalizer(attachment, attachintent.Finalizer(attachment.Spec.Attacher)):
		return ctrl.Result{}, nil
	case !backend.NeedsAttach(attachment.Spec.Attacher):
		return ctrl.Result{}, r.letGo(ctx, attachment)
	}
	return r.take(ctx, &leaving{attachment: attachment})
}

// take detaches through the backend, if that is safe.
func (r *Reconciler) take(ctx context.Context, leaves *leaving) (ctrl.Result, error) {
	if err := r.findOut(ctx, leaves); err != nil {
		return r.failDetach(ctx, leaves, err)
	}
	attacher, err := attachintent.AttacherOf(leaves.opened, leaves.object.Name)
	if err != nil {
		return r.failDetach(ctx, leaves, err)
	}
	if asked, err := backendqueue.EndedDetach(attacher, leaves.volume, leaves.from); asked {
		return r.finish(ctx, leaves, err)
	}
	may, err := r.mayDetach(ctx, leaves)
	switch {
	case err != nil:
		return r.failDetach(ctx, leaves, err)
	case !may.Allowed:
		return r.stay(ctx, leaves, attacher, may)
	}
	r.tellForced(leaves, may)
	return r.finish(ctx, leaves, attacher.Detach(ctx, leaves.volume, leaves.from))
}

// finish removes the finalizer if the backend reports that the volume is detached. Decisions
// since the call do not matter: the node does not have the volume any more.
func (r *Reconciler) finish(ctx context.Context, leaves *leaving, refused error) (ctrl.Result, error) {
	if leaves.refused = refused; refused != nil {
		return r.failDetach(ctx, leaves, refused)
	}
	return ctrl.Result{}, r.letGo(ctx, leaves.attachment)
}

// stay keeps an attachment while its volume must not be detached. It releases the attachment
// if the backend reports that the volume is not attached to that machine and will not be. Then
// nothing is left to detach: a deleted attachment never attaches again.
func (r *Reconciler) stay(ctx context.Context, leaves *leaving, attacher backend.Attacher, may attach.Force) (ctrl.Result, error) {
	is, err := attacher.IsAttached(ctx, leaves.volume, leaves.from)
	switch {
	case backend.Unfinished(err):
		return r.failDetach(ctx, leaves, err)
	case err == nil && !is:
		return ctrl.Result{}, r.letGo(ctx, leaves.attachment)
	case err != nil:
		ctrl.LoggerFrom(ctx).V(1).Info("nobody says whether the volume is attached", "why", err.Error())
	}
	return ctrl.Result{RequeueAfter: may.After}, r.setDetachError(ctx, leaves, backend.Conflict.Errorf("%s", may.Reason))
}

// findOut finds what to detach, and from which machine: from the record on the attachment, and
// from the PersistentVolume.
func (r *Reconciler) findOut(ctx context.Context, leaves *leaving) error {
	attachment := leaves.attachment
	var err error
	if leaves.pv, err = r.findVolume(ctx, attachment); err != nil {
		return err
	}
	intent, err := Believable(attachment, leaves.pv)
	if err != nil {
		return err
	}
	leaves.volume = intent.Volume
	leaves.from = backend.NodeIdentity{Name: attachment.Spec.NodeName, ProviderID: attachintent.InstanceOf(attachment, intent)}
	leaves.object, leaves.opened, err = r.getBackend(ctx, attachment, intent.Backend)
	return err
}

func (r *Reconciler) findVolume(ctx context.Context, attachment *storagev1.VolumeAttachment) (*corev1.PersistentVolume, error) {
	for _, name := range index.AttachmentVolume(attachment) {
		for _, reader := range []client.Reader{r.client, r.live} {
			pv := &corev1.PersistentVolume{}
			err := reader.Get(ctx, client.ObjectKey{Name: name}, pv)
			switch {
			case err == nil:
				return pv, nil
			case !apierrors.IsNotFound(err):
				return nil, fmt.Errorf("reading volume %s: %w", name, err)
			}
		}
	}
	return nil, nil
}

// Believable returns the verified record of what an attachment attached. Users can write
// annotations. If the attachment's name, a hash of the volume's id, does not agree, or there
// is no annotation, the PersistentVolume counts. An existing disk has no owner record: there
// the name has to agree.
func Believable(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) (*attachintent.Intent, error) {
	intent, err := attachintent.Of(attachment)
	if err == nil && intent != nil &&
		(pv == nil && !volume.IsDiskPath(intent.Volume) || attachment.Name == volume.AttachmentName(attachment.Spec.Attacher, intent.Volume, attachment.Spec.NodeName)) {
		return intent, nil
	}
	if pv == nil || pv.Spec.CSI == nil {
		return nil, backend.Invalid.Errorf("the volume object is gone, or is none of this driver, and nothing tells which disk is attached: detach it by hand, "+
			"and take the finalizer %s off this VolumeAttachment", attachintent.Finalizer(attachment.Spec.Attacher))
	}
	said := &attachintent.Intent{Backend: pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute], Volume: pv.Spec.CSI.VolumeHandle}
	if intent != nil {
		said.Instance = intent.Instance
	}
	return said, nil
}

// letGo removes the finalizer of an attachment that attaches nothing any more.
func (r *Reconciler) letGo(ctx context.Context, attachment *storagev1.VolumeAttachment) error {
	before := attachment.DeepCopy()
	controllerutil.RemoveFinalizer(attachment, attachintent.Finalizer(attachment.Spec.Attacher))
	err := r.client.Patch(ctx, attachment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return wrap.Error(client.IgnoreNotFound(err), "letting go of attachment %s", attachment.Name)
}
