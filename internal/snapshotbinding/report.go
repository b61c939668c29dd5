package snapshotbinding

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Report records the problem with which a pass ended, if it is one, and when it is looked at again: after as long as it has lasted.
// A pass that another one was ahead of comes again soon.
func (b *Binder) Report(ctx context.Context, of Snapshot, err error) (ctrl.Result, error) {
	problem := new(snapshots.Problem)
	switch {
	case apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: wake.AfterConflict}, nil
	case !errors.As(err, &problem):
		return ctrl.Result{}, err
	}
	text, now := message.Cut(problem.Text, message.MaxStatus), metav1.NewTime(b.Clock.Now())
	if had := *of.Error; had != nil && ptr.Deref(had.Message, "") == text && !ptr.Deref(*of.Ready, true) {
		lasted := now.Sub(ptr.Deref(had.Time, now).Time)
		return ctrl.Result{RequeueAfter: min(max(lasted, snapshots.Backoff), snapshots.BackoffMax)}, nil
	}
	before := of.DeepCopyObject().(client.Object)
	*of.Error, *of.Ready = &snapshotv1.VolumeSnapshotError{Time: &now, Message: &text}, new(false)
	if err := b.write(ctx, of, before); err != nil {
		return ctrl.Result{}, err
	}
	b.Events.Eventf(of.Object, nil, corev1.EventTypeWarning, problem.Event, "Snapshot", "%s", text)
	return ctrl.Result{RequeueAfter: snapshots.Backoff}, nil
}

// Copy says of a snapshot what its content says. What is recorded stays: one that is ready remains so, and has the time and the
// size that it had.
func (b *Binder) Copy(ctx context.Context, of Snapshot, content Content) error {
	if of.IsComplete() {
		return nil
	}
	before := of.DeepCopyObject().(client.Object)
	*of.Bound = new(content.GetName())
	created := *of.Created == nil && content.Created != nil
	if created {
		*of.Created = content.Created
	}
	if content.Size > 0 && (*of.Size == nil || (*of.Size).IsZero()) {
		*of.Size = resource.NewQuantity(content.Size, resource.BinarySI)
	}
	*of.Ready, *of.Error = &content.Ready, content.Error
	if apiequality.Semantic.DeepEqual(before, of.Object) {
		return nil
	}
	if err := b.write(ctx, of, before); err != nil {
		return err
	}
	if created {
		b.say(of, b.Kind.Created)
	}
	if content.Ready {
		b.say(of, b.Kind.Ready)
	}
	return nil
}

func (b *Binder) write(ctx context.Context, of Snapshot, before client.Object) error {
	err := b.Client.Status().Patch(ctx, of.Object, patch.Fenced(before))
	return wrap.Error(err, "writing the status of %s %s", b.Kind.Name, client.ObjectKeyFromObject(of))
}

// Pending says why a deleted snapshot is kept.
func (b *Binder) Pending(of Snapshot, format string, arguments ...any) {
	if text := fmt.Sprintf(format, arguments...); b.last.IsNew(client.ObjectKeyFromObject(of), text) {
		b.Events.Eventf(of.Object, nil, corev1.EventTypeWarning, event.SnapshotDeletePending, "Snapshot", "%s", text)
	}
}

// Forget drops what was said of a snapshot that is gone.
func (b *Binder) Forget(name types.NamespacedName) { b.last.Forget(name) }

func (b *Binder) say(of Snapshot, what News) {
	b.Events.Eventf(of.Object, nil, corev1.EventTypeNormal, what.Event, "Snapshot", "%s", what.Text)
}
