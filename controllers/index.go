package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Names of the cache's field indexes.
const (
	podsByClaim         = "stowage.claim"
	claimsByVolume      = "stowage.volume"
	claimsByPod         = "stowage.pod"
	claimsByClass       = "stowage.class"
	claimsByAttributes  = "stowage.attributes"
	claimsBySource      = "stowage.source"
	volumesByHandle     = "stowage.handle"
	volumesByBackend    = "stowage.backend"
	volumesByClaim      = "stowage.claim"
	volumesByAttributes = "stowage.attributes"
	volumesByNode       = "stowage.node"
	capacitiesByDisk    = "stowage.disk"
	// Attachments are known by the volume object and by the node that they are of.
	attachmentsByVolume = "stowage.volume"
	attachmentsByNode   = "stowage.node"
	// podsByNode is the API server's own name of the same, which can be asked, too.
	podsByNode = "spec.nodeName"
	// podsByVolume finds pods by what they name themselves, and nodesByVolume nodes by
	// what they were told: both by the kubelet's name of it.
	podsByVolume  = "stowage.volume"
	nodesByVolume = "stowage.volume"
	// attachmentsByStorage is attachmentsByVolume, and finds what pods name, too.
	attachmentsByStorage = "stowage.storage"
)

// addIndexes adds the field indexes that the reconcilers look things up by.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&corev1.Pod{}, podsByClaim, func(object client.Object) []string { return claimsOf(object.(*corev1.Pod)) }},
		{&corev1.PersistentVolumeClaim{}, claimsByClass, func(object client.Object) []string {
			return waitingClass(object.(*corev1.PersistentVolumeClaim))
		}},
		{&corev1.PersistentVolumeClaim{}, claimsByVolume, func(object client.Object) []string {
			return volumeOf(object.(*corev1.PersistentVolumeClaim))
		}},
		{&corev1.PersistentVolumeClaim{}, claimsBySource, func(object client.Object) []string {
			return awaitedSource(object.(*corev1.PersistentVolumeClaim))
		}},
		{&corev1.PersistentVolumeClaim{}, claimsByPod, func(object client.Object) []string {
			return podOf(object.(*corev1.PersistentVolumeClaim))
		}},
		{&corev1.PersistentVolumeClaim{}, claimsByAttributes, attributesOf},
		{&corev1.PersistentVolume{}, volumesByAttributes, attributesOf},
		{&corev1.PersistentVolume{}, volumesByHandle, func(object client.Object) []string {
			return handleOf(object.(*corev1.PersistentVolume))
		}},
		{&corev1.PersistentVolume{}, volumesByClaim, func(object client.Object) []string {
			return claimRefOf(object.(*corev1.PersistentVolume))
		}},
		{&corev1.PersistentVolume{}, volumesByBackend, func(object client.Object) []string {
			return backendOf(object.(*corev1.PersistentVolume))
		}},
		{&corev1.Pod{}, podsByNode, nodeOfIndexedPod},
		{&corev1.Pod{}, podsByVolume, inlineVolumesOf},
		{&corev1.Node{}, nodesByVolume, volumesToldTo},
		{&storagev1.VolumeAttachment{}, attachmentsByStorage, attachmentStorage},
		{&storagev1.VolumeAttachment{}, attachmentsByVolume, attachmentVolume},
		{&storagev1.VolumeAttachment{}, attachmentsByNode, attachmentNode},
		{&stowagev1alpha1.LocalVolume{}, volumesByNode, nodeOfLocalVolume},
	}
	for _, index := range indexes {
		if err := indexer.IndexField(ctx, index.object, index.field, index.values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	return nil
}
