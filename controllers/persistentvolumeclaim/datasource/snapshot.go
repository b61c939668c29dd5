package datasource

import (
	"context"
	"fmt"
	"strconv"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// maxSaid bounds what a message has of a snapshot's error, in bytes.
const maxSaid = 400

// restores finds snapshots. All is read live: a cache may show a VolumeSnapshot that is gone, or an earlier
// one of the same name.
type restores struct {
	live client.Reader
	open step.Open
}

// sourceOf returns the snapshot that a claim's volume is restored from.
func (r restores) sourceOf(ctx context.Context, claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (*backend.Source, error) {
	_, key, _ := provisioned.SourceKey(claim)
	opened, err := r.open(claim, object)
	switch {
	case err != nil:
		return nil, err
	case !opened.Capabilities().Restores:
		return nil, backend.Invalid.Errorf("StorageBackend %s can't restore VolumeSnapshot %s, and no empty volume is made in its place: %s",
			object.Name, key.Name, withoutDataSource)
	}
	snapshot := &snapshotv1.VolumeSnapshot{}
	if err := r.read(ctx, key, snapshot); err != nil {
		return nil, err
	}
	content, err := r.contentOf(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	if err := restorable(claim, snapshot, content, backend.DriverOf(object)); err != nil {
		return nil, err
	}
	return sourceIn(claim, content), nil
}

// contentOf reads the content that is bound to a VolumeSnapshot. A VolumeSnapshot of the same name may have
// been there before, with a content of its own: only one that names this one by its UID counts.
func (r restores) contentOf(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	switch {
	case !snapshot.DeletionTimestamp.IsZero():
		return nil, errDeleted(snapshot)
	case snapshots.BoundContent(snapshot) == "":
		return nil, errNotReady(snapshot, nil)
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	if err := r.read(ctx, client.ObjectKey{Name: snapshots.BoundContent(snapshot)}, content); err != nil {
		return nil, err
	}
	if ref := content.Spec.VolumeSnapshotRef; !snapshots.IsOf(content, snapshot) {
		return nil, backend.Unavailable.Errorf("VolumeSnapshot %s, which is to be restored, names VolumeSnapshotContent %s, which is that of VolumeSnapshot %s/%s "+
			"with uid %q: create the claim from another", snapshot.Name, content.Name, ref.Namespace, ref.Name, ref.UID)
	}
	return content, nil
}

// read reads a VolumeSnapshot, or a content, live.
func (r restores) read(ctx context.Context, key client.ObjectKey, into client.Object) error {
	kind := fmt.Sprintf("%T", into)[len("*v1."):]
	err := r.live.Get(ctx, key, into)
	switch {
	case meta.IsNoMatchError(err):
		return backend.Unavailable.Errorf("%s %s, which is to be restored, can't be read: install the CRDs of %s/v1",
			kind, key.Name, provisioned.SnapshotGroup)
	case apierrors.IsNotFound(err):
		return backend.Unavailable.Errorf("%s %s, which is to be restored, does not exist: create it, or %s", kind, key.Name, withoutDataSource)
	case err != nil:
		return fmt.Errorf("reading %s %s, which is to be restored: %w", kind, key.Name, err)
	}
	return nil
}

// restorable returns why a snapshot can't be restored to a claim.
func restorable(claim *corev1.PersistentVolumeClaim, snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent, driver string) error {
	source := sourceIn(claim, content)
	switch {
	case !content.DeletionTimestamp.IsZero() || metav1.HasAnnotation(content.ObjectMeta, snapshots.BeingDeleted):
		return errDeleted(snapshot)
	case content.Spec.Driver != driver:
		return backend.Invalid.Errorf("VolumeSnapshot %s, which is to be restored, is of driver %.200q, and the claim's class of %s: use a class of that driver",
			snapshot.Name, content.Spec.Driver, driver)
	case source.Snapshot == "" || !ptr.Deref(content.Status.ReadyToUse, false) || !snapshots.IsReady(snapshot):
		return errNotReady(snapshot, content.Status)
	case !source.AnyMode && ptr.Deref(content.Spec.SourceVolumeMode, modeOf(claim)) != modeOf(claim):
		return backend.Invalid.Errorf("VolumeSnapshot %s, which is to be restored, is of a volume with volumeMode %s: ask for the same, "+
			"or set the annotation %s of VolumeSnapshotContent %s to true", snapshot.Name, *content.Spec.SourceVolumeMode, snapshots.AllowModeChange, content.Name)
	}
	if _, fits, err := recordOf(claim, *source).Text(); !fits || err != nil {
		return backend.Invalid.Errorf("VolumeSnapshot %s, which is to be restored, has a handle of %d bytes, which is too long: %s", snapshot.Name, len(source.Snapshot), withoutDataSource)
	}
	return roomy(claim, snapshot, content)
}

// sourceIn is what a claim's volume is made of, from a VolumeSnapshot's content.
func sourceIn(claim *corev1.PersistentVolumeClaim, content *snapshotv1.VolumeSnapshotContent) *backend.Source {
	// A file system that a tenant writes as a device may harm the kernel that mounts it.
	lets, err := strconv.ParseBool(content.Annotations[snapshots.AllowModeChange])
	source := &backend.Source{Namespace: provisioned.Elsewhere(claim), AnyMode: lets && err == nil}
	if content.Status != nil {
		source.Snapshot = ptr.Deref(content.Status.SnapshotHandle, "")
		source.Given = snapshots.IsGiven(content)
	}
	return source
}

func modeOf(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeMode {
	return ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

// roomy returns an error where a claim asks for less than a snapshot needs. Either object may have the size.
func roomy(claim *corev1.PersistentVolumeClaim, snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) error {
	needed := resource.NewQuantity(ptr.Deref(content.Status.RestoreSize, 0), resource.BinarySI)
	if other := snapshot.Status.RestoreSize; other != nil && other.Cmp(*needed) > 0 {
		needed = other
	}
	if wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]; wanted.Cmp(*needed) < 0 {
		return backend.Invalid.Errorf("VolumeSnapshot %s, which is to be restored, needs %s, and the claim asks for %s: create the claim again with at least %s",
			snapshot.Name, needed, &wanted, needed)
	}
	return nil
}

func errDeleted(snapshot *snapshotv1.VolumeSnapshot) error {
	return backend.Invalid.Errorf("VolumeSnapshot %s, which is to be restored, is being deleted: create the claim again, from another", snapshot.Name)
}

func errNotReady(snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContentStatus) error {
	said := "its events say what it waits for"
	if content != nil && content.Error != nil && ptr.Deref(content.Error.Message, "") != "" {
		said = message.Cut(*content.Error.Message, maxSaid)
	}
	return backend.Unavailable.Errorf("VolumeSnapshot %s, which is to be restored, is not ready yet: %s", snapshot.Name, said)
}
