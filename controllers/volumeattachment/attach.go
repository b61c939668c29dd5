package volumeattachment

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/volumeattachment/order"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// attacher attaches volumes to nodes.
type attacher struct {
	client      client.Client
	live        client.Reader
	shared      liveread.Reads
	drivers     drivers.Drivers
	backends    backends
	inTreeDisks inTreeDisks
	report      *reporter
	order       order.Order
	prepared    *attachintent.Writes
	volumes     liveread.Volumes
	// clock and missing record when the machine of an attachment was first seen to be gone.
	clock   clock.PassiveClock
	missing *wake.Instants
}

func newAttacher(deps reconciler.Dependencies, backends backends, report *reporter, missing *wake.Instants) *attacher {
	return &attacher{
		client: deps.Client, live: deps.Live, shared: deps.Reads, drivers: drivers.New(deps.Client), backends: backends, report: report, clock: deps.Clock, missing: missing,
		order: order.New(deps), prepared: deps.Prepared, volumes: liveread.Volumes{Cache: deps.Client, Live: deps.Live, Prepared: deps.Prepared},
		inTreeDisks: inTreeDisks{client: deps.Client, live: deps.Live, shared: deps.Reads, backends: backends},
	}
}

// attach attaches a volume to a node, in an order that survives a crash anywhere:
//
//	record what is attached, and to which machine, with the finalizer
//	protect the PersistentVolume
//	confirm that all of it still holds, and that no other attachment came first
//	attach
//	set status.attached
//
// After a crash before the last write, the call is repeated. If the attachment was deleted
// since, what may be attached is detached.
func (r *attacher) attach(ctx context.Context, attachment *storagev1.VolumeAttachment) (ctrl.Result, error) {
	attaches, err := r.drivers.Attaches(ctx, attachment.Spec.Attacher)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !attaches:
		return ctrl.Result{}, r.report.setAttached(ctx, attachment, nil, nil)
	case attachment.Annotations[stowagev1alpha1.StrayAnnotation] != "":
		return ctrl.Result{}, r.delete(ctx, attachment)
	}
	a := &attaching{attachment: attachment}
	for _, step := range []func(context.Context, *attaching) error{
		r.getNode, r.ensureSameMachine, r.stopIfAttached, r.getVolume, r.getAttacher,
		r.getDriverID, r.ensurePrepared, r.ensureVolumeKept, r.inTreeDisks.confirm, r.takeAnswer, r.awaitOlder, r.callAttach,
	} {
		switch err := step(ctx, a); {
		case err != nil && !a.callFailed && backend.KindOf(err) == "":
			return ctrl.Result{}, err
		case err != nil:
			if !a.callFailed && errors.Is(err, backend.Conflict) { // An event shows the end of what it waits for, and each retry lists all attachments.
				r.report.refused.Note(attachment.Name, r.clock.Now().Add(-retryInvalid))
			}
			return r.report.failAttach(ctx, attachment, a.pv, err)
		case a.done:
			return ctrl.Result{}, nil
		}
	}
	return ctrl.Result{}, nil
}

// delete deletes an attachment, so that its volume is detached.
func (r *attacher) delete(ctx context.Context, attachment *storagev1.VolumeAttachment) error {
	err := r.client.Delete(ctx, attachment, client.Preconditions{UID: &attachment.UID})
	return wrap.Error(client.IgnoreNotFound(err), "deleting attachment %s", attachment.Name)
}

// getNode reads the node. The cache may not show a new node yet, so a live read confirms that
// there is none.
func (r *attacher) getNode(ctx context.Context, a *attaching) error {
	name := a.attachment.Spec.NodeName
	var err error
	a.node, err = liveread.Find(ctx, name, &corev1.Node{}, liveread.Uncopied(r.client), r.live)
	switch {
	case err != nil:
		return fmt.Errorf("reading node %s: %w", name, err)
	case a.node == nil && !a.attachment.Status.Attached:
		return backend.WrongNode.Errorf("there is no node %s: nothing is attached until it registers, or the attachment is deleted", name)
	}
	a.done = a.node == nil
	if a.done {
		// The deletion of the attachment goes by this time: see mayDetach.
		r.missing.Since(string(a.attachment.UID), r.clock.Now())
	} else {
		r.missing.Forget(string(a.attachment.UID))
	}
	return nil
}

// ensureSameMachine deletes an attachment to a machine that is not its node's any more:
// another machine registered under the name. The attachment is created again if a pod needs
// the volume.
func (r *attacher) ensureSameMachine(ctx context.Context, a *attaching) error {
	intent, err := attachintent.Of(a.attachment)
	if err != nil {
		return err
	}
	instance := attachintent.InstanceOf(a.attachment, intent)
	if !isAnotherMachine(a.node, instance) {
		return nil
	}
	// The cache of nodes may be older than the attachment, and show the former machine.
	if a.node, err = liveNode(ctx, r.shared, a.node.Name); err != nil || a.node == nil {
		a.done = err == nil
		return err
	}
	if !isAnotherMachine(a.node, instance) {
		return nil
	}
	a.done = true
	return r.delete(ctx, a.attachment)
}

// stopIfAttached ends the pass if all is done. An attachment that lost its annotation or its
// finalizer goes on.
func (r *attacher) stopIfAttached(ctx context.Context, a *attaching) error {
	a.done = a.attachment.Status.Attached && a.attachment.Annotations[stowagev1alpha1.AttachmentAnnotation] != "" &&
		controllerutil.ContainsFinalizer(a.attachment, attachintent.Finalizer(a.attachment.Spec.Attacher))
	if !a.done {
		return nil
	}
	// Another leader may have recorded an error where this one succeeded.
	return r.report.setAttached(ctx, a.attachment, a.pv, a.attachment.Status.AttachmentMetadata)
}

// getVolume reads the PersistentVolume, live. One that is being deleted may lose its storage,
// and the removal of the storage reads, live, whether there is an attachment. One of the two
// sees the other.
func (r *attacher) getVolume(ctx context.Context, a *attaching) error {
	names := index.AttachmentVolume(a.attachment)
	if len(names) == 0 {
		return backend.Invalid.Errorf("the attachment names no volume: Stowage attaches PersistentVolumes only")
	}
	pv, err := r.volumes.Get(ctx, a.attachment, names[0])
	if err != nil {
		if apierrors.IsNotFound(err) {
			return backend.NotFound.Errorf("there is no volume %s: delete the pod that needs it", names[0])
		}
		return fmt.Errorf("reading volume %s: %w", names[0], err)
	}
	a.pv, a.volume = pv, pv
	if attachintent.IsInTreeDisk(a.attachment, pv) {
		if err := r.inTreeDisks.translate(ctx, a); err != nil {
			return err
		}
	}
	switch {
	case a.volume.Spec.CSI == nil || a.volume.Spec.CSI.Driver != a.attachment.Spec.Attacher:
		return backend.Invalid.Errorf("volume %s is not one of driver %s", pv.Name, a.attachment.Spec.Attacher)
	case !pv.DeletionTimestamp.IsZero() && pv.Status.Phase != corev1.VolumeBound:
		return backend.NotFound.Errorf("volume %s is being deleted, and no claim is bound to it: nothing is attached any more", pv.Name)
	}
	return checkSameStorage(a)
}

// checkSameStorage returns an error if the PersistentVolume's name now refers to other storage
// than when the attachment was prepared. The earlier storage has to be detached first.
func checkSameStorage(a *attaching) error {
	intent, err := attachintent.Of(a.attachment)
	if err != nil || intent == nil || intent.Volume == a.volume.Spec.CSI.VolumeHandle {
		return err
	}
	return backend.Invalid.Errorf("the attachment was made for %s, and volume %s refers to %s now: delete the attachment, so that it is created again",
		intent.Volume, a.pv.Name, a.volume.Spec.CSI.VolumeHandle)
}

func (r *attacher) getAttacher(ctx context.Context, a *attaching) error {
	if attachintent.IsInTreeDisk(a.attachment, a.pv) {
		return r.inTreeDisks.getAttacher(ctx, a)
	}
	if backend.IsOurs(a.attachment.Spec.Attacher) && volume.IsDiskPath(a.volume.Spec.CSI.VolumeHandle) {
		// The backend would attach any disk of the project by its path. To another driver, a path may be an id.
		return backend.Conflict.Errorf("%q is no id of a volume: nothing is attached for it", a.volume.Spec.CSI.VolumeHandle)
	}
	names := index.BackendOf(a.pv)
	if len(names) == 0 {
		return backend.Invalid.Errorf("volume %s names no StorageBackend", a.pv.Name)
	}
	found, err := r.backends.get(ctx, a.attachment, names[0])
	a.attacher = found.attacher
	return err
}

// ensurePrepared records the volume and the machine before the attach: after a crash here, the
// record is enough for the detach.
func (r *attacher) ensurePrepared(ctx context.Context, a *attaching) error {
	before := a.attachment.DeepCopy()
	changed := attachintent.Prepare(a.attachment, a.volume, a.node)
	if a.driverID != "" && a.attachment.Annotations[attachintent.DriverIDAnnotation] != a.driverID {
		metav1.SetMetaDataAnnotation(&a.attachment.ObjectMeta, attachintent.DriverIDAnnotation, a.driverID)
		changed = true
	}
	if !changed {
		return nil
	}
	err := r.prepared.By(a.attachment, func() error {
		return r.client.Patch(ctx, a.attachment, patch.Fenced(before))
	})
	if apierrors.IsNotFound(err) {
		a.done = true
		return nil
	}
	return wrap.Error(err, "preparing attachment %s", a.attachment.Name)
}

// ensureVolumeKept protects the PersistentVolume while it may be attached. One that is being
// deleted cannot get a finalizer any more: its claim still protects it, and the attachment's
// record is enough to detach it.
func (r *attacher) ensureVolumeKept(ctx context.Context, a *attaching) error {
	before := a.pv.DeepCopy()
	if !a.pv.DeletionTimestamp.IsZero() || !controllerutil.AddFinalizer(a.pv, attachintent.Finalizer(a.attachment.Spec.Attacher)) {
		return nil
	}
	err := r.client.Patch(ctx, a.pv, patch.Fenced(before))
	return wrap.Error(err, "adding the finalizer of volume %s", a.pv.Name)
}

// takeAnswer ends the pass with the answer to an earlier call, or because it is still to come. What came
// first doesn't matter any more: the node has the volume, or does not.
func (r *attacher) takeAnswer(ctx context.Context, a *attaching) error {
	if a.attachment.Status.Attached {
		return nil
	}
	attached, found, err := backendqueue.EndedAttach(a.attacher, a.request())
	if !found {
		return nil
	}
	a.done = true
	return r.finish(ctx, a, attached, err)
}

// awaitOlder confirms that the attachment still exists and is prepared, and that no other of the same
// storage comes first.
func (r *attacher) awaitOlder(ctx context.Context, a *attaching) error {
	exists, err := r.order.Confirm(ctx, order.Candidate{Attachment: a.attachment, PersistentVolume: a.pv, Volume: a.volume})
	a.done = err == nil && !exists
	return err
}

func (r *attacher) callAttach(ctx context.Context, a *attaching) error {
	if a.attachment.Status.Attached {
		return nil
	}
	attached, err := a.attacher.Attach(ctx, a.request())
	return r.finish(ctx, a, attached, err)
}

// finish records the answer to the call.
func (r *attacher) finish(ctx context.Context, a *attaching, attached backend.Attachment, err error) error {
	if err != nil {
		a.callFailed = true
		return err
	}
	return r.report.setAttached(ctx, a.attachment, a.pv, attached.Metadata)
}

// getDriverID finds the id that the CSI driver gave the node. An attachment that has another on
// record may be attached to the machine that had that id: it is deleted, so that it is detached
// there, and is created again if a pod needs the volume.
func (r *attacher) getDriverID(ctx context.Context, a *attaching) error {
	driver := a.attachment.Spec.Attacher
	if backend.IsOurs(driver) {
		return nil
	}
	id, err := driverIDOf(ctx, r.live, driver, a.attachment.Spec.NodeName)
	if err != nil {
		return err
	}
	recorded := a.attachment.Annotations[attachintent.DriverIDAnnotation]
	switch {
	case a.attachment.Status.Attached && (recorded != "" || id == ""):
		a.driverID = recorded
	case id == "":
		return backend.NotReady.Errorf("CSI driver %s has not registered with node %s: nothing is attached before its CSINode lists the driver",
			driver, a.attachment.Spec.NodeName)
	case recorded != "" && recorded != id:
		a.done = true
		return r.delete(ctx, a.attachment)
	default:
		a.driverID = id
	}
	return nil
}
