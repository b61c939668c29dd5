package volumesnapshotcontent

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshotcontent"
)

// reporter writes what the storage says into the status of contents, and sends their events.
type reporter struct{ snapshotcontent.Reporter }

// made records a snapshot. What is recorded stays, but for whether it is ready.
func (r *reporter) made(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, made *backend.Snapshot) (ctrl.Result, error) {
	before := content.DeepCopy()
	if content.Status == nil {
		content.Status = &snapshotv1.VolumeSnapshotContentStatus{}
	}
	status := content.Status
	created := made.Created
	if created.IsZero() {
		created = r.Clock.Now()
	}
	if status.SnapshotHandle == nil {
		status.SnapshotHandle = &made.Handle
	}
	if status.CreationTime == nil {
		status.CreationTime = ptr.To(created.UnixNano())
	}
	if size := made.RestoreSize.Value(); status.RestoreSize == nil && size > 0 {
		status.RestoreSize = &size
	}
	if status.VolumeGroupSnapshotHandle == nil && made.Group != "" {
		status.VolumeGroupSnapshotHandle = &made.Group
	}
	status.ReadyToUse, status.Error = &made.Ready, nil
	return r.Record(ctx, servable(content), before, made.Ready)
}

// windowBegan says, also in the namespace of the VolumeSnapshot, that another content keeps the snapshot.
func (r *reporter) windowBegan(content, next *snapshotv1.VolumeSnapshotContent, until time.Time) {
	ref := content.Spec.VolumeSnapshotRef.DeepCopy()
	ref.APIVersion, ref.Kind = snapshotv1.SchemeGroupVersion.String(), "VolumeSnapshot"
	note := fmt.Sprintf("the snapshot of VolumeSnapshot %s/%s is kept by VolumeSnapshotContent %s until %s, and deleted then: docs/operate/undelete.md says "+
		"how to have it back", ref.Namespace, ref.Name, next.Name, until.UTC().Format(time.RFC3339))
	r.Events.Eventf(next, nil, corev1.EventTypeNormal, event.UndeleteWindowBegan, "Delete", "%s", note)
	event.Unlogged(r.Events).Eventf(ref, nil, corev1.EventTypeNormal, event.UndeleteWindowBegan, "Delete", "%s", note)
}

// noWindow says that a snapshot is deleted at once, because too many of its namespace are kept.
func (r *reporter) noWindow(content *snapshotv1.VolumeSnapshotContent, kept int) {
	r.Warn(servable(content), event.NoUndeleteWindow, fmt.Sprintf("the snapshot is deleted now, and can't come back: %d of namespace %s are in their undelete windows, "+
		"and more are not kept", kept, content.Spec.VolumeSnapshotRef.Namespace))
}
