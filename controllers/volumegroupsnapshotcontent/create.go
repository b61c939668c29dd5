package volumegroupsnapshotcontent

import (
	"context"
	"errors"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// maker makes group snapshots, and finds those that people name.
type maker struct {
	client  client.Client
	targets targets
	report  *reporter
}

// create makes the group snapshot, or asks whether it is ready. The annotation comes before the call: a crash
// after the call loses the answer, and a repeat finds the group snapshot by its name. With a recorded handle
// nothing can be lost any more.
func (m *maker) create(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (ctrl.Result, error) {
	of, request, err := m.targets.forCreation(ctx, content)
	if err != nil {
		return m.report.failed(ctx, content, event.GroupSnapshotCreationFailed, err)
	}
	if recorded(content) == "" {
		if err := m.ensureBeingCreated(ctx, content); err != nil {
			return ctrl.Result{}, err
		}
	}
	made, err := of.CreateGroupSnapshot(ctx, request)
	if errors.Is(err, backend.NotFound) || errors.Is(err, backend.Invalid) {
		// There is no group snapshot, and no call makes one any more: the content may go.
		if err := m.removeBeingCreated(ctx, content); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err == nil {
		err = checkSame(content, made)
	}
	if err != nil {
		return m.report.failed(ctx, content, event.GroupSnapshotCreationFailed, err)
	}
	result, err := m.report.made(ctx, content, made)
	if err != nil {
		return result, err
	}
	return result, m.removeBeingCreated(ctx, content)
}

// checkSame returns an error where an answer is about another group snapshot than the recorded one, or has other
// members. The storage lost that one, and the call made it again: it has the content of another time.
func checkSame(content *groupsnapshotv1.VolumeGroupSnapshotContent, made *backend.GroupSnapshot) error {
	had := recorded(content)
	switch {
	case had == "":
		return nil
	case had != made.Handle:
		return backend.Conflict.Errorf("the storage answers with group snapshot %.200q, and the recorded one is %.200q: it is not taken", made.Handle, had)
	}
	known := map[string]string{}
	for _, member := range content.Status.VolumeSnapshotInfoList {
		known[member.VolumeHandle] = member.SnapshotHandle
	}
	for _, member := range made.Members {
		if had, is := known[member.Volume]; is && had != member.Handle {
			return backend.Conflict.Errorf("the storage answers with snapshot %.200q of volume %.200q, and the recorded one is %.200q: it is not taken",
				member.Handle, member.Volume, had)
		}
	}
	return nil
}

// find looks for a group snapshot that a person names.
func (m *maker) find(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (ctrl.Result, error) {
	of, err := m.targets.open(ctx, content)
	if err != nil {
		return m.report.failed(ctx, content, event.GroupSnapshotCheckFailed, err)
	}
	named := content.Spec.Source.GroupSnapshotHandles
	found, err := of.FindGroupSnapshot(ctx, named.VolumeGroupSnapshotHandle, named.VolumeSnapshotHandles)
	if err != nil {
		return m.report.failed(ctx, content, event.GroupSnapshotCheckFailed, err)
	}
	// A person makes the contents of the members, too. snapshot-controller makes those that the status lists.
	found.Members = nil
	return m.report.made(ctx, content, found)
}

// ensureBeingCreated records that the group snapshot may exist from now on.
func (m *maker) ensureBeingCreated(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) error {
	if isBeingCreated(content) {
		return nil
	}
	before := content.DeepCopy()
	metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.GroupBeingCreated, "yes")
	return wrap.Error(m.client.Patch(ctx, content, patch.Fenced(before)), "recording the call for VolumeGroupSnapshotContent %s", content.Name)
}

// removeBeingCreated records that no call is open any more.
func (m *maker) removeBeingCreated(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) error {
	if !isBeingCreated(content) {
		return nil
	}
	before := content.DeepCopy()
	delete(content.Annotations, snapshots.GroupBeingCreated)
	return wrap.Error(m.client.Patch(ctx, content, patch.Fenced(before)), "recording the answer for VolumeGroupSnapshotContent %s", content.Name)
}
