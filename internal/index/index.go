// Package index has the field indexes of the manager's cache: their names, the functions that
// compute their values, and Add, which registers them. The value functions are pure.
package index

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// Names of the field indexes of the cache. Those of VolumesOf, VolumesFor and ClaimsNaming are buckets, for
// these functions alone.
const (
	PodsByClaim         = "stowage.claim"
	ClaimsByVolume      = "stowage.volume"
	ClaimsByPod         = "stowage.pod"
	ClaimsByClass       = "stowage.class"
	ClaimsByAttributes  = "stowage.attributes"
	ClaimsBySource      = "stowage.source"
	VolumesByHandle     = "stowage.handle"
	VolumesByBackend    = "stowage.backend"
	VolumesByClaim      = "stowage.claim"
	VolumesByAttributes = "stowage.attributes"
	VolumesByNode       = "stowage.node"
	CapacitiesByDisk    = "stowage.disk"
	// Attachments are indexed by their PersistentVolume and by their node.
	AttachmentsByVolume = "stowage.volume"
	AttachmentsByNode   = "stowage.node"
	// PodsByNode is the API server's own field selector of the same meaning, so live reads can
	// use it, too.
	PodsByNode = "spec.nodeName"
	// PodsByVolume finds pods by their inline volumes, and NodesByVolume finds nodes by their
	// volumesAttached. Both use the kubelet's name of the volume.
	PodsByVolume  = "stowage.volume"
	NodesByVolume = "stowage.volume"
	// AttachmentsByStorage is AttachmentsByVolume plus inline volumes.
	AttachmentsByStorage = "stowage.storage"
	// SnapshotsByClaim is added by AddSnapshots, and ContentsByHandle by AddContents.
	SnapshotsByClaim = "stowage.claim"
	ContentsByHandle = "stowage.handle"
)

// Add adds the field indexes that the reconcilers use.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&corev1.Pod{}, PodsByClaim, of(ClaimsOf)},
		{&corev1.PersistentVolumeClaim{}, ClaimsByClass, of(PendingClass)},
		{&corev1.PersistentVolumeClaim{}, ClaimsByVolume, bucketed(VolumeOf)},
		{&corev1.PersistentVolumeClaim{}, ClaimsBySource, of(SourceOf)},
		{&corev1.PersistentVolumeClaim{}, ClaimsByPod, of(PodOf)},
		{&corev1.PersistentVolumeClaim{}, ClaimsByAttributes, AttributesOf},
		{&corev1.PersistentVolume{}, VolumesByAttributes, AttributesOf},
		{&corev1.PersistentVolume{}, VolumesByHandle, bucketed(HandleOf)},
		{&corev1.PersistentVolume{}, VolumesByClaim, bucketed(ClaimRefOf)},
		{&corev1.PersistentVolume{}, VolumesByBackend, of(BackendOf)},
		{&corev1.Pod{}, PodsByNode, NodeOfIndexedPod},
		{&corev1.Pod{}, PodsByVolume, InlineVolumesOf},
		{&corev1.Node{}, NodesByVolume, VolumesAttachedTo},
		{&storagev1.VolumeAttachment{}, AttachmentsByStorage, AttachmentStorage},
		{&storagev1.VolumeAttachment{}, AttachmentsByVolume, AttachmentVolume},
		{&storagev1.VolumeAttachment{}, AttachmentsByNode, AttachmentNode},
		{&stowagev1alpha1.NodeVolume{}, VolumesByNode, NodeOfNodeVolume},
	}
	for _, index := range indexes {
		if err := indexer.IndexField(ctx, index.object, index.field, index.values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	return nil
}

// of returns the index function of one kind of object.
func of[T client.Object](values func(T) []string) client.IndexerFunc {
	return func(object client.Object) []string { return values(object.(T)) }
}

// AddSnapshots registers the index of VolumeSnapshots, once the API server serves them.
func AddSnapshots(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &snapshotv1.VolumeSnapshot{}, SnapshotsByClaim, of(claimOfSnapshot)); err != nil {
		return fmt.Errorf("indexing VolumeSnapshots by claim: %w", err)
	}
	return nil
}

// AddContents registers the index of VolumeSnapshotContents, once the API server serves them.
func AddContents(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &snapshotv1.VolumeSnapshotContent{}, ContentsByHandle, of(handleOfContent)); err != nil {
		return fmt.Errorf("indexing VolumeSnapshotContents by handle: %w", err)
	}
	return nil
}

// handleOfContent returns the snapshot for which a person made a content.
func handleOfContent(content *snapshotv1.VolumeSnapshotContent) []string {
	if handle := content.Spec.Source.SnapshotHandle; handle != nil {
		return []string{*handle}
	}
	return nil
}

// claimOfSnapshot returns the claim that a VolumeSnapshot is made of.
func claimOfSnapshot(snapshot *snapshotv1.VolumeSnapshot) []string {
	if name := snapshots.SourceClaim(snapshot); name != "" {
		return []string{name}
	}
	return nil
}
