package snapshotcontent

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Reporter writes what the storage says into the status of contents, and sends their events.
type Reporter struct {
	Client client.Client
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Last   event.Last
}

// Record writes a status that changed, and asks again for a snapshot that isn't ready.
func (r *Reporter) Record(ctx context.Context, of Content, before client.Object, ready bool) (ctrl.Result, error) {
	if !apiequality.Semantic.DeepEqual(before, of.Object) {
		if err := r.Client.Status().Patch(ctx, of.Object, patch.Fenced(before)); err != nil {
			return ctrl.Result{}, wrap.Error(err, "recording the %s of %sContent %s", of.Snapshot, of.Snapshots, of.GetName())
		}
	}
	if ready {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: snapshots.UntilReady}, nil
}

// Failed records why there is no snapshot yet, and when it is tried again. Work that goes on has no event: what is said of it
// changes.
func (r *Reporter) Failed(ctx context.Context, of Content, reason string, failure error) (ctrl.Result, error) {
	if errors.Is(failure, backend.Queued) {
		// The answer wakes the content.
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	text, before := message.Cut(failure.Error(), message.MaxStatus), of.DeepCopyObject().(client.Object)
	if had, ready := of.Status(); *had == nil || ptr.Deref((*had).Message, "") != text || ptr.Deref(*ready, true) {
		*had, *ready = &snapshotv1.VolumeSnapshotError{Time: ptr.To(metav1.NewTime(r.Clock.Now())), Message: &text}, new(false)
		if err := r.Client.Status().Patch(ctx, of.Object, patch.Fenced(before)); err != nil {
			return ctrl.Result{}, wrap.Error(err, "recording the error of %sContent %s", of.Snapshots, of.GetName())
		}
	}
	if backend.KindOf(failure) != backend.InProgress {
		r.Warn(of, reason, text)
	}
	return snapshots.Retry(failure)
}

// Unreleased says why a content isn't released yet.
func (r *Reporter) Unreleased(of Content, failure error) (ctrl.Result, error) {
	if errors.Is(failure, backend.Queued) {
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	r.Warn(of, of.DeleteError, failure.Error())
	return snapshots.Retry(failure)
}

// Warn sends an event, unless it was the last one.
func (r *Reporter) Warn(of Content, reason, text string) {
	if r.Last.IsNew(client.ObjectKeyFromObject(of), text) {
		r.Events.Eventf(of.Object, nil, corev1.EventTypeWarning, reason, "Snapshot", "%s", text)
	}
}

// Deleted says that the snapshot is gone.
func (r *Reporter) Deleted(of Content) {
	r.say(of, event.SnapshotDeleted, fmt.Sprintf("the %s was deleted from the storage", of.Snapshot))
}

// Kept says that the snapshot stays, because of another content.
func (r *Reporter) Kept(of Content, other string) {
	r.say(of, event.SnapshotKept, fmt.Sprintf("the %s stays: %sContent %s has it, too", of.Snapshot, of.Snapshots, other))
}

func (r *Reporter) say(of Content, reason, text string) {
	r.Events.Eventf(of.Object, nil, corev1.EventTypeNormal, reason, "Snapshot", "%s", text)
}
