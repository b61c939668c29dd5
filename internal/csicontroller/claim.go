package csicontroller

import (
	"context"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// claimNamespace returns the namespace of the claim that has a volume, as a live read says. It is an error of kind NotFound where no
// claim has a volume of this StorageBackend with the handle. Backends that record the namespace of snapshots compare it with the volume's.
func (s *Service) claimNamespace(ctx context.Context, b storage, handle, name string) (string, error) {
	driver := backend.DriverOf(b.object)
	volumes, err := s.VolumesOf(ctx, driver, handle)
	if err != nil {
		return "", backend.Unavailable.Errorf("looking for a PersistentVolume of volume %.200q: %w", handle, err)
	}
	for i := range volumes {
		pv := &corev1.PersistentVolume{}
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(&volumes[i]), pv); client.IgnoreNotFound(err) != nil {
			return "", backend.Unavailable.Errorf("reading PersistentVolume %s: %w", volumes[i].Name, err)
		}
		if s.isOfClaim(pv, driver, handle) {
			return pv.Spec.ClaimRef.Namespace, s.checkServed(ctx, driver, name)
		}
	}
	return "", backend.NotFound.Errorf("StorageBackend %s made no volume %.200q for a claim", s.Name, handle)
}

// isOfClaim reports whether this StorageBackend made the volume of a PersistentVolume, and a claim has or had it.
func (s *Service) isOfClaim(pv *corev1.PersistentVolume, driver, handle string) bool {
	return pv.Annotations[volume.AnnDynamicallyProvisioned] == driver && pv.Spec.CSI != nil && pv.Spec.ClaimRef != nil &&
		pv.Spec.CSI.Driver == driver && pv.Spec.CSI.VolumeHandle == handle &&
		pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute] == s.Name
}

// checkServed returns an error where the manager itself makes the snapshot of the VolumeSnapshot that a name stands for: of two
// snapshots, the content would name one alone. csi-snapshotter names snapshots so, unless a flag of it says otherwise. After an error
// of kind Unavailable it keeps the annotation that is the manager's intent, too.
func (s *Service) checkServed(ctx context.Context, driver, name string) error {
	uid, isOfObject := strings.CutPrefix(name, backend.SnapshotID(""))
	switch {
	case !isOfObject || !backend.IsSnapshotID(name):
		return nil
	case !slices.Contains(s.CSISnapshotter, driver):
		return backend.Unavailable.Errorf("the manager makes the snapshots of VolumeSnapshots itself: give it --csi-snapshotter-drivers=%s, or stop csi-snapshotter", driver)
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	content.Name = snapshots.ContentName(types.UID(uid))
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(content), content)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return backend.Unavailable.Errorf("reading VolumeSnapshotContent %s: %w", content.Name, err)
	case snapshots.IsBegun(content):
		return backend.Unavailable.Errorf("the manager has begun the snapshot of VolumeSnapshotContent %s: it goes on with that", content.Name)
	}
	return nil
}
