package volumesnapshotcontent

import (
	"context"
	"errors"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// maker makes snapshots, and finds those that people name.
type maker struct {
	client  client.Client
	targets targets
	report  *reporter
}

// create makes the snapshot, or asks whether it is ready. The annotations come before the call: a crash
// after the call loses the answer, and a repeat with the same parameters finds the snapshot by its name.
// With a recorded handle nothing can be lost any more.
func (m *maker) create(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (ctrl.Result, error) {
	of, request, err := m.targets.forCreation(ctx, content)
	if err != nil {
		return m.report.Failed(ctx, servable(content), event.SnapshotCreationFailed, err)
	}
	if recorded(content) == "" {
		if err := m.ensureBeingCreated(ctx, content, of.object, request.Parameters); err != nil {
			return ctrl.Result{}, err
		}
	}
	made, err := of.CreateSnapshot(ctx, request)
	if errors.Is(err, backend.NotFound) || errors.Is(err, backend.Invalid) {
		// There is no snapshot, and no call makes one any more: the content may go.
		if err := m.endCall(ctx, content, true); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err == nil {
		err = checkSame(content, made)
	}
	if err != nil {
		return m.report.Failed(ctx, servable(content), event.SnapshotCreationFailed, err)
	}
	result, err := m.report.made(ctx, content, made)
	if err != nil {
		return result, err
	}
	return result, m.endCall(ctx, content, made.Ready)
}

// checkSame returns an error where an answer is about another snapshot than the recorded one. The
// storage lost that one, and the call made it again: it has the content of another time.
func checkSame(content *snapshotv1.VolumeSnapshotContent, made *backend.Snapshot) error {
	had := recorded(content)
	switch {
	case had == "":
		return nil
	case had != made.Handle:
		return backend.Conflict.Errorf("the storage answers with snapshot %.200q, and the recorded one is %.200q: it is not taken", made.Handle, had)
	case !made.Created.IsZero() && ptr.Deref(content.Status.CreationTime, made.Created.UnixNano()) != made.Created.UnixNano():
		return backend.Conflict.Errorf("the storage made snapshot %.200q again, at %s: it is not taken", had, made.Created)
	}
	return nil
}

// find looks for a snapshot that a person names, or that was made with its group.
func (m *maker) find(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (ctrl.Result, error) {
	of, err := m.targets.find(ctx, content)
	if err != nil {
		return m.report.Failed(ctx, servable(content), event.SnapshotCheckFailed, err)
	}
	if err := m.ensureRecorded(ctx, content, of.object); err != nil {
		return ctrl.Result{}, err
	}
	found, err := of.FindSnapshot(ctx, known(content))
	if err != nil {
		return m.report.Failed(ctx, servable(content), event.SnapshotCheckFailed, err)
	}
	return m.report.made(ctx, content, found)
}

// ensureRecorded records the StorageBackend of a snapshot that a person names.
func (m *maker) ensureRecorded(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, object *stowagev1alpha1.StorageBackend) error {
	if isRecorded(content, object) {
		return nil
	}
	before := content.DeepCopy()
	record(content, object)
	return wrap.Error(m.client.Patch(ctx, content, patch.Fenced(before)), "recording the StorageBackend of VolumeSnapshotContent %s", content.Name)
}

// ensureBeingCreated records that the snapshot may exist from now on, where, and with which parameters it is made.
func (m *maker) ensureBeingCreated(
	ctx context.Context, content *snapshotv1.VolumeSnapshotContent, object *stowagev1alpha1.StorageBackend, parameters map[string]string,
) error {
	if isBeingCreated(content) && isRecorded(content, object) {
		return nil
	}
	before := content.DeepCopy()
	record(content, object)
	return servable(content).BeginCall(ctx, m.client, before, parameters)
}

// endCall records that no call is open any more. After the last one, its parameters aren't needed either.
func (m *maker) endCall(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, last bool) error {
	if !isBeingCreated(content) && (!last || !metav1.HasAnnotation(content.ObjectMeta, snapshots.Parameters)) {
		return nil
	}
	return servable(content).EndCall(ctx, m.client, last)
}
