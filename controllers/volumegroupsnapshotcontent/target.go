package volumegroupsnapshotcontent

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
)

// targets find the backends of contents, and what the calls have.
type targets struct {
	client  client.Reader
	live    client.Reader
	storage *opener.Opener
	waking  *wake.Source
	// namespace is the manager's own, which has the Secrets.
	namespace string
}

// forCreation returns the backend of a content, and the request for its group snapshot.
func (t targets) forCreation(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (backend.GroupSnapshotter, backend.GroupSnapshotRequest, error) {
	owner := content.Spec.VolumeGroupSnapshotRef.UID
	request := backend.GroupSnapshotRequest{ID: backend.GroupSnapshotID(owner), Owner: owner, Volumes: content.Spec.Source.VolumeHandles}
	if err := request.Check(); err != nil {
		return nil, request, err
	}
	object, err := t.backendOf(ctx, content)
	if err != nil {
		return nil, request, err
	}
	if !object.DeletionTimestamp.IsZero() && !isBeingCreated(content) {
		return nil, request, backend.Invalid.Errorf("StorageBackend %s is being deleted: no group snapshot is begun", object.Name)
	}
	if request.Parameters, err = servable(content).Parameters(ctx, t.live, object, t.namespace); err != nil {
		return nil, request, err
	}
	of, err := t.opened(content, object)
	return of, request, err
}

// open returns the backend of a content whose group snapshot exists.
func (t targets) open(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (backend.GroupSnapshotter, error) {
	object, err := t.backendOf(ctx, content)
	if err != nil {
		return nil, err
	}
	return t.opened(content, object)
}

func (t targets) opened(content *groupsnapshotv1.VolumeGroupSnapshotContent, object *stowagev1alpha1.StorageBackend) (backend.GroupSnapshotter, error) {
	key := client.ObjectKeyFromObject(content)
	opened, err := t.storage.Open(object, func() { t.waking.Add(key) })
	if err != nil {
		return nil, err
	}
	return backend.GroupSnapshotterOf(opened, object.Name)
}

// backendOf reads the StorageBackend of a content: it has the name of its driver. Stowage's own drivers make no group
// snapshots.
func (t targets) backendOf(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (*stowagev1alpha1.StorageBackend, error) {
	name, object := content.Spec.Driver, &stowagev1alpha1.StorageBackend{}
	if backend.IsOurs(name) {
		return nil, backend.Invalid.Errorf("driver %s can't make snapshots of groups: delete the VolumeGroupSnapshot, and make a VolumeSnapshot of each claim", name)
	}
	err := t.client.Get(ctx, client.ObjectKey{Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, backend.Unavailable.Errorf("StorageBackend %s is gone: create it again", name)
	case err != nil:
		return nil, fmt.Errorf("reading StorageBackend %s: %w", name, err)
	case backend.DriverOf(object) != name:
		return nil, backend.Invalid.Errorf("StorageBackend %s has the driver %s: give that of the content's driver its name", name, backend.DriverOf(object))
	}
	return object, nil
}
