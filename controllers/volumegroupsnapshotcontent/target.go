package volumegroupsnapshotcontent

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/snapshots"
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
	if request.Parameters, err = t.parameters(ctx, content, object); err != nil {
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

// parameters are those of the content's class that are the driver's. A repeat has those of the first call.
func (t targets) parameters(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, object *stowagev1alpha1.StorageBackend) (map[string]string, error) {
	if parameters, recorded, err := snapshots.RecordedParameters(&content.ObjectMeta); recorded {
		return parameters, err
	}
	name := ptr.Deref(content.Spec.VolumeGroupSnapshotClassName, "")
	if name == "" {
		return nil, backend.Invalid.Errorf("the content names no VolumeGroupSnapshotClass: create the VolumeGroupSnapshot with one")
	}
	class := &groupsnapshotv1.VolumeGroupSnapshotClass{}
	err := t.live.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case apierrors.IsNotFound(err):
		return nil, backend.Invalid.Errorf("VolumeGroupSnapshotClass %s does not exist: create it, with the parameters that it had", name)
	case err != nil:
		return nil, fmt.Errorf("reading VolumeGroupSnapshotClass %s: %w", name, err)
	case class.Driver != content.Spec.Driver:
		return nil, backend.Invalid.Errorf("VolumeGroupSnapshotClass %s is of driver %.200q, and the content is of %.200q", name, class.Driver, content.Spec.Driver)
	}
	return snapshots.DriverParameters(snapshots.Class{Kind: "VolumeGroupSnapshotClass", Name: name, Parameters: class.Parameters}, object, t.namespace)
}
