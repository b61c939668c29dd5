package volumegroupsnapshotcontent

import (
	"context"
	"errors"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
)

// maker makes group snapshots, and looks for those whose handles are known.
type maker struct {
	client  client.Client
	targets targets
	report  *reporter
}

// create makes the group snapshot of a content without a handle. The annotations come before the call: a crash after the
// call loses the answer, and a repeat with the same parameters finds the group snapshot by its name.
func (m *maker) create(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (ctrl.Result, error) {
	of, request, err := m.targets.forCreation(ctx, content)
	if err != nil {
		return m.report.Failed(ctx, servable(content), event.GroupSnapshotCreationFailed, err)
	}
	if err := m.ensureBeingCreated(ctx, content, request.Parameters); err != nil {
		return ctrl.Result{}, err
	}
	made, err := of.CreateGroupSnapshot(ctx, request)
	if errors.Is(err, backend.NotFound) || errors.Is(err, backend.Invalid) {
		// There is no group snapshot, and no call makes one any more: the content may go.
		if err := m.removeBeingCreated(ctx, content); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err != nil {
		return m.report.Failed(ctx, servable(content), event.GroupSnapshotCreationFailed, err)
	}
	return m.record(ctx, content, made)
}

// look asks whether a group snapshot is ready whose handle is known.
func (m *maker) look(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (ctrl.Result, error) {
	of, err := m.targets.open(ctx, content)
	if err != nil {
		return m.report.Failed(ctx, servable(content), event.GroupSnapshotCheckFailed, err)
	}
	found, err := of.FindGroupSnapshot(ctx, known(content), members(content))
	if err != nil {
		return m.report.Failed(ctx, servable(content), event.GroupSnapshotCheckFailed, err)
	}
	if content.Spec.Source.GroupSnapshotHandles != nil {
		// A person makes the contents of the members, too. snapshot-controller makes those that the status lists.
		found.Members = nil
	}
	return m.record(ctx, content, found)
}

// record writes what the storage says, and then that no call is open any more.
func (m *maker) record(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, made *backend.GroupSnapshot) (ctrl.Result, error) {
	result, err := m.report.made(ctx, content, made)
	if err != nil {
		return result, err
	}
	return result, m.removeBeingCreated(ctx, content)
}

// ensureBeingCreated records that the group snapshot may exist from now on, and with which parameters it is made.
func (m *maker) ensureBeingCreated(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, parameters map[string]string) error {
	if isBeingCreated(content) {
		return nil
	}
	return servable(content).BeginCall(ctx, m.client, content.DeepCopy(), parameters)
}

// removeBeingCreated records that no call is open any more.
func (m *maker) removeBeingCreated(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) error {
	if !isBeingCreated(content) {
		return nil
	}
	return servable(content).EndCall(ctx, m.client, true)
}
