// Package index has the field indexes of the manager's cache: their names, the functions that
// compute their values, and Add, which registers them. The value functions are pure.
package index

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Names of the field indexes of the cache.
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
)

// Add adds the field indexes that the reconcilers use.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&corev1.Pod{}, PodsByClaim, func(object client.Object) []string { return ClaimsOf(object.(*corev1.Pod)) }},
		{&corev1.PersistentVolumeClaim{}, ClaimsByClass, func(object client.Object) []string {
			return WaitingClass(object.(*corev1.PersistentVolumeClaim))
		}},
		{&corev1.PersistentVolumeClaim{}, ClaimsByVolume, func(object client.Object) []string {
			return VolumeOf(object.(*corev1.PersistentVolumeClaim))
		}},
		{&corev1.PersistentVolumeClaim{}, ClaimsBySource, func(object client.Object) []string {
			return AwaitedSource(object.(*corev1.PersistentVolumeClaim))
		}},
		{&corev1.PersistentVolumeClaim{}, ClaimsByPod, func(object client.Object) []string {
			return PodOf(object.(*corev1.PersistentVolumeClaim))
		}},
		{&corev1.PersistentVolumeClaim{}, ClaimsByAttributes, AttributesOf},
		{&corev1.PersistentVolume{}, VolumesByAttributes, AttributesOf},
		{&corev1.PersistentVolume{}, VolumesByHandle, func(object client.Object) []string {
			return HandleOf(object.(*corev1.PersistentVolume))
		}},
		{&corev1.PersistentVolume{}, VolumesByClaim, func(object client.Object) []string {
			return ClaimRefOf(object.(*corev1.PersistentVolume))
		}},
		{&corev1.PersistentVolume{}, VolumesByBackend, func(object client.Object) []string {
			return BackendOf(object.(*corev1.PersistentVolume))
		}},
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
