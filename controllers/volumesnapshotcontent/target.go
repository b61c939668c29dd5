package volumesnapshotcontent

import (
	"context"
	"errors"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
)

// targets find the backends of contents, and what the calls have.
type targets struct {
	backends
	live    client.Reader
	storage *opener.Opener
	waking  *wake.Source
	// namespace is the manager's own, which has the Secrets.
	namespace string
}

// target is the backend of a content, and its object.
type target struct {
	backend.Snapshotter
	opened backend.Backend
	object *stowagev1alpha1.StorageBackend
}

// forCreation returns the backend of a content, and the request for its snapshot.
func (t targets) forCreation(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (*target, backend.SnapshotRequest, error) {
	owner := content.Spec.VolumeSnapshotRef.UID
	request := backend.SnapshotRequest{
		ID: backend.SnapshotID(owner), Owner: owner, Namespace: content.Spec.VolumeSnapshotRef.Namespace, Volume: ptr.Deref(content.Spec.Source.VolumeHandle, ""),
		Handle:   recorded(content),
		Unwanted: !content.DeletionTimestamp.IsZero() && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete,
	}
	object, err := t.backends.of(ctx, content)
	if err != nil {
		return nil, request, err
	}
	if !object.DeletionTimestamp.IsZero() && !isBeingCreated(content) && recorded(content) == "" {
		return nil, request, backend.Invalid.Errorf("StorageBackend %s is being deleted: no snapshot is begun", object.Name)
	}
	if request.Parameters, err = servable(content).Parameters(ctx, t.live, object, t.namespace); err != nil {
		return nil, request, err
	}
	opened, err := t.open(content, object)
	return opened, request, err
}

// find returns the backend of a content. Of several, search chooses for a snapshot that a person names.
func (t targets) find(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (*target, error) {
	object, err := t.backends.of(ctx, content)
	if errors.Is(err, errSeveral) && content.Spec.Source.SnapshotHandle != nil {
		return t.search(ctx, content, err)
	}
	if err != nil {
		return nil, err
	}
	return t.open(content, object)
}

// search asks each backend of a content's driver for its snapshot. It returns the one that made it, or else the only one
// that has it; where another may have it, too, or can't say, the error.
func (t targets) search(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, several error) (*target, error) {
	objects, err := t.backends.withDriver(ctx, content.Spec.Driver)
	if err != nil {
		return nil, err
	}
	var has, made []*target
	for i := range objects {
		var found *backend.Snapshot
		opened, err := t.open(content, &objects[i])
		if err == nil {
			found, err = opened.FindSnapshot(ctx, *content.Spec.Source.SnapshotHandle)
		}
		kind := backend.KindOf(err)
		switch {
		case err == nil:
			has = append(has, opened)
			if found.Made {
				made = append(made, opened)
			}
		case kind != backend.NotFound && kind != backend.Conflict && kind != backend.Invalid:
			return nil, err
		}
	}
	if len(made) == 1 {
		return made[0], nil
	}
	switch len(has) {
	case 0:
		return nil, backend.NotFound.Errorf("%w: none of them finds snapshot %.200q", several, *content.Spec.Source.SnapshotHandle)
	case 1:
		return has[0], nil
	default:
		return nil, several
	}
}

func (t targets) open(content *snapshotv1.VolumeSnapshotContent, object *stowagev1alpha1.StorageBackend) (*target, error) {
	key := client.ObjectKeyFromObject(content)
	opened, err := t.storage.Open(object, func() { t.waking.Add(key) })
	if err != nil {
		return nil, err
	}
	snapshotter, err := backend.SnapshotterOf(opened, object.Name)
	return &target{snapshotter, opened, object}, err
}
