package volumeattachment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	backendqueue "github.com/stowage-dev/stowage/internal/backend/queue"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// detacher detaches volumes from nodes.
type detacher struct {
	client   client.Client
	live     client.Reader
	drivers  drivers.Drivers
	backends backends
	releases releases
	report   *reporter
	// deleted are the attachments that this process deleted a moment ago, and leads is whether no other one acts on them.
	deleted *attachintent.Writes
	leads   func() bool
}

func newDetacher(deps reconciler.Dependencies, backends backends, report *reporter, missing *wake.Instants) *detacher {
	return &detacher{
		client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client), backends: backends, report: report, deleted: deps.Deleted, leads: deps.Leads,
		releases: releases{client: deps.Client, live: deps.Live, shared: deps.Reads, clock: deps.Clock, missing: missing},
	}
}

// detach detaches a volume from a node, once that is safe, and then removes the finalizer of
// its attachment: the last write.
func (r *detacher) detach(ctx context.Context, cached *storagev1.VolumeAttachment) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(cached, attachintent.Finalizer(cached.Spec.Attacher)) {
		return ctrl.Result{}, nil
	}
	d, err := r.current(ctx, cached)
	if err != nil {
		return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "reading attachment %s", cached.Name)
	}
	attaches, err := r.drivers.Attaches(ctx, d.attachment.Spec.Attacher)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case d.attachment.UID != cached.UID || !controllerutil.ContainsFinalizer(d.attachment, attachintent.Finalizer(d.attachment.Spec.Attacher)):
		return ctrl.Result{}, nil
	case !attaches:
		return ctrl.Result{}, r.removeFinalizer(ctx, d)
	}
	return r.detachIfSafe(ctx, d)
}

// current returns an attachment as it is. It reads it live: one of the same name may have been created and attached since the
// cache was updated.
//
// No read is needed right after this process deleted the attachment, which then had a finalizer, and while it leads. Only a leader
// removes the finalizer. Since the deletion that was this process, and it takes the deletion once.
func (r *detacher) current(ctx context.Context, cached *storagev1.VolumeAttachment) (*detaching, error) {
	if deletion, found := r.deleted.Take(cached); found && r.leads() {
		return &detaching{attachment: cached, isCached: true, released: deletion.Released}, nil
	}
	attachment := &storagev1.VolumeAttachment{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(cached), attachment)
	return &detaching{attachment: attachment}, err
}

func (r *detacher) detachIfSafe(ctx context.Context, d *detaching) (ctrl.Result, error) {
	if err := r.findAttached(ctx, d); err != nil {
		return r.fail(ctx, d, err)
	}
	if called, err := backendqueue.EndedDetach(d.opened.attacher, d.volume, d.from); called {
		return r.finish(ctx, d, err)
	}
	may, err := r.releases.mayDetach(ctx, d)
	switch {
	case err != nil:
		return r.fail(ctx, d, err)
	case !may.Allowed:
		return r.keep(ctx, d, may)
	}
	if d.isCached && !r.leads() {
		return ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	}
	r.reportForce(d, may)
	return r.finish(ctx, d, d.opened.attacher.Detach(ctx, d.volume, d.from))
}

// findAttached finds what to detach, and from which machine: from the record on the
// attachment, and from the PersistentVolume.
func (r *detacher) findAttached(ctx context.Context, d *detaching) error {
	for _, name := range index.AttachmentVolume(d.attachment) {
		var err error
		if d.pv, err = liveread.Find(ctx, name, &corev1.PersistentVolume{}, r.client, r.live); err != nil {
			return fmt.Errorf("reading volume %s: %w", name, err)
		}
	}
	intent, err := VerifiedIntent(d.attachment, d.pv)
	if err != nil {
		return err
	}
	d.volume = intent.Volume
	d.from = attachintent.MachineOf(d.attachment, intent)
	if err := r.findDriverID(ctx, d); err != nil {
		return err
	}
	d.opened, err = r.backends.get(ctx, d.attachment, intent.Backend)
	return err
}

// keep keeps an attachment while its volume must not be detached. It removes the finalizer if
// the backend reports that the volume is not attached to that machine and will not be. Then
// nothing is left to detach: a deleted attachment never attaches again.
func (r *detacher) keep(ctx context.Context, d *detaching, may attach.Force) (ctrl.Result, error) {
	is, err := d.opened.attacher.IsAttached(ctx, d.volume, d.from)
	switch {
	case backend.Unfinished(err):
		return r.fail(ctx, d, err)
	case err == nil && !is:
		return ctrl.Result{}, r.removeFinalizer(ctx, d)
	case err != nil:
		ctrl.LoggerFrom(ctx).V(1).Info("it is unknown whether the volume is attached", "why", err.Error())
	}
	return ctrl.Result{RequeueAfter: may.After}, r.report.setDetachError(ctx, d.attachment, d.pv, backend.Conflict.Errorf("%s", may.Reason))
}

// reportForce records an event, and counts, that a detach is by force. It does so before the
// call, because the node may be Ready again when it returns.
func (r *detacher) reportForce(d *detaching, may attach.Force) {
	if may == released || !r.report.warnings.recordForced(d.attachment, d.pv, may.Reason) {
		return
	}
	if metrics := r.backends.storage.Metrics; metrics != nil {
		metrics.Forced(d.opened.object.Name)
	}
}

// finish removes the finalizer if the backend reports that the volume is detached. Decisions
// since the call do not matter: the node does not have the volume any more.
func (r *detacher) finish(ctx context.Context, d *detaching, err error) (ctrl.Result, error) {
	if err != nil {
		d.callFailed = true
		return r.fail(ctx, d, err)
	}
	return ctrl.Result{}, r.removeFinalizer(ctx, d)
}

// fail reports an error of the backend. Other errors are only logged.
func (r *detacher) fail(ctx context.Context, d *detaching, err error) (ctrl.Result, error) {
	if !d.callFailed && backend.KindOf(err) == "" {
		return ctrl.Result{}, err
	}
	return r.report.failDetach(ctx, d.attachment, d.pv, err)
}

// removeFinalizer releases an attachment that attaches nothing any more.
func (r *detacher) removeFinalizer(ctx context.Context, d *detaching) error {
	attachment, before := d.attachment, d.attachment.DeepCopy()
	controllerutil.RemoveFinalizer(attachment, attachintent.Finalizer(attachment.Spec.Attacher))
	err := r.client.Patch(ctx, attachment, patch.Fenced(before))
	if err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "removing the finalizer of attachment %s", attachment.Name)
	}
	r.releases.missing.Forget(string(attachment.UID))
	effect.Log(ctx, effect.Detached, before.DeletionTimestamp.Time, before, d.pv)
	return nil
}

// findDriverID completes the identity of the node that a volume is detached from. What the
// attachment records comes first: the CSINode may be another machine's by now.
func (r *detacher) findDriverID(ctx context.Context, d *detaching) error {
	driver := d.attachment.Spec.Attacher
	if backend.IsOurs(driver) || d.from.DriverID != "" {
		return nil
	}
	id, err := driverIDOf(ctx, r.live, driver, d.from.Name)
	switch {
	case err != nil:
		return err
	case id == "":
		return backend.Invalid.Errorf("neither the annotation %s nor CSINode %s has the id that driver %s gave the node: detach the volume by hand, "+
			"and take the finalizer %s off this VolumeAttachment", attachintent.DriverIDAnnotation, d.from.Name, driver, attachintent.Finalizer(driver))
	}
	d.from.DriverID = id
	return nil
}
