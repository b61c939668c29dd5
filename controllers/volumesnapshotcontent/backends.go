package volumesnapshotcontent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/volume"
)

// backends find the StorageBackends of contents. Reads are of the cache.
type backends struct{ client client.Reader }

// of reads the StorageBackend of a content. That of a CSI driver has the driver's name. One of Stowage's
// own drivers may have several.
func (b backends) of(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (*stowagev1alpha1.StorageBackend, error) {
	name, err := content.Spec.Driver, error(nil)
	if backend.IsOurs(name) {
		name, err = b.ownNameOf(ctx, content)
	}
	if err != nil {
		return nil, err
	}
	object := &stowagev1alpha1.StorageBackend{}
	err = b.client.Get(ctx, client.ObjectKey{Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, backend.Unavailable.Errorf("StorageBackend %s %w: create it again", name, errGone)
	case err != nil:
		return nil, fmt.Errorf("reading StorageBackend %s: %w", name, err)
	case backend.DriverOf(object) != content.Spec.Driver:
		return nil, backend.Invalid.Errorf("StorageBackend %s has the driver %s, and the content is of %.200q: correct the label %s of VolumeSnapshotContent %s",
			name, backend.DriverOf(object), content.Spec.Driver, stowagev1alpha1.BackendLabel, content.Name)
	}
	return object, nil
}

// ownNameOf returns the name of the StorageBackend that is recorded on the content, or else that of the
// volume, or the only one of the driver.
func (b backends) ownNameOf(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (string, error) {
	if name := content.Labels[stowagev1alpha1.BackendLabel]; name != "" {
		return name, nil
	}
	driver, handle := content.Spec.Driver, ptr.Deref(content.Spec.Source.VolumeHandle, "")
	volumes, err := index.VolumesOf(ctx, b.client, volume.Key(driver, handle))
	if err != nil {
		return "", err
	}
	for i := range volumes {
		if names := index.BackendOf(&volumes[i]); len(names) > 0 {
			return names[0], nil
		}
	}
	return b.onlyOneOf(ctx, content)
}

// errGone is part of the error of a content without a StorageBackend.
var errGone = errors.New("is gone")

// errSeveral is part of the error of a content that doesn't say which of several StorageBackends it is of.
var errSeveral = errors.New("several StorageBackends have the driver")

func (b backends) onlyOneOf(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (string, error) {
	objects, err := b.withDriver(ctx, content.Spec.Driver)
	switch {
	case err != nil:
		return "", err
	case len(objects) == 0:
		return "", backend.Unavailable.Errorf("each StorageBackend of driver %s %w: create one", content.Spec.Driver, errGone)
	case len(objects) == 1:
		return objects[0].Name, nil
	default:
		return "", backend.Invalid.Errorf("%w %s: name that of the snapshot in the label %s of VolumeSnapshotContent %s",
			errSeveral, content.Spec.Driver, stowagev1alpha1.BackendLabel, content.Name)
	}
}

// withDriver returns the StorageBackends of a driver.
func (b backends) withDriver(ctx context.Context, driver string) ([]stowagev1alpha1.StorageBackend, error) {
	all := &stowagev1alpha1.StorageBackendList{}
	if err := b.client.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing the StorageBackends: %w", err)
	}
	return slices.DeleteFunc(all.Items, func(object stowagev1alpha1.StorageBackend) bool { return backend.DriverOf(&object) != driver }), nil
}

// record sets, in memory, the label that names the StorageBackend of one of Stowage's own drivers. From
// then on only that counts: the volume may go before its snapshots.
func record(content *snapshotv1.VolumeSnapshotContent, object *stowagev1alpha1.StorageBackend) {
	if !backend.IsOurs(content.Spec.Driver) {
		return
	}
	if content.Labels == nil {
		content.Labels = map[string]string{}
	}
	content.Labels[stowagev1alpha1.BackendLabel] = object.Name
}

func isRecorded(content *snapshotv1.VolumeSnapshotContent, object *stowagev1alpha1.StorageBackend) bool {
	return !backend.IsOurs(content.Spec.Driver) || content.Labels[stowagev1alpha1.BackendLabel] == object.Name
}
