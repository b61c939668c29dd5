// Package controllers holds Stowage's reconcilers, one file family per kind:
//
//	persistentvolumeclaim_*   match, bind and provision claims, protect them
//	persistentvolume_*        phases of volumes, their protection and reclaim
//	node_*                    decide what is attached to which node
//	volumeattachment_*        attach and detach volumes of Stowage's drivers
//	storagebackend_*          probe backends, keep their StorageClasses, audit what they hold
//	localdisk_*               a LocalDisk for each node of local backends; its room, for the scheduler
//	localvolume_*             volumes that are to go, whose node is gone; and those whose LocalVolume is gone
//	pod_*                     make the claims of generic ephemeral volumes
//	volumeattributesclass_*   protect VolumeAttributesClasses that are used
//
// They read, call and write. What is decided is decided in internal/binder; how
// storage is made is internal/backend's. They run in the manager and never mount.
package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Scope says which claims and volumes Stowage acts on.
type Scope string

const (
	// ClassesScope acts only on claims and volumes of Stowage's own drivers and
	// leaves binding, phases and protection to kube-controller-manager.
	ClassesScope Scope = "classes"
	// ClusterScope acts on every claim and volume of the cluster, instead of
	// kube-controller-manager's volume controllers.
	ClusterScope Scope = "cluster"
)

const (
	// claimWorkers is how many claims are worked on at once: most of the time
	// of a bind is waiting for the API server.
	claimWorkers = 32
	// volumeWorkers is how many volumes are worked on at once.
	volumeWorkers = 32
	// conflictRetry is how soon what met a conflict is looked at again: the
	// cache needs a moment to see what the other writer wrote.
	conflictRetry = 50 * time.Millisecond
	// contendedRetry is how soon is tried again what another is just at work on.
	contendedRetry = time.Second
	// retryUnanswered is how soon a backend that doesn't tell when it is done is
	// asked again; those that do wake who asked.
	retryUnanswered = 30 * time.Second
)

// Options are what the reconcilers need beside the manager.
type Options struct {
	// Scope says which claims and volumes are acted on.
	Scope Scope
	// Backends are the kinds of storage that are served.
	Backends *backend.Registry
	// Recycler empties volumes of policy Recycle that people made. Nil: nobody does.
	Recycler backend.Recycler
	// Namespace is the manager's own, where it publishes what room nodes have. Empty:
	// nowhere.
	Namespace string
	// ForceDetachAfter is how long a node must have been not Ready, or gone, until
	// volumes of drivers other than Stowage's are taken from it. A StorageBackend says it
	// of its own.
	ForceDetachAfter time.Duration
	// AttachmentCheckInterval is how often what backends say is attached is compared with
	// what is recorded. Zero: every minute.
	AttachmentCheckInterval time.Duration
	// Clock tells the time. Nil: the machine's.
	Clock clock.PassiveClock
	// Metrics take the numbers of backends' calls. Nil: nobody counts them.
	Metrics prometheus.Registerer

	storage storage
	shared  liveReads
}

// ClientOptions are those of the manager's client. A reconcile waits until the
// cache has seen what this process wrote to the object: without that, every bind
// would wake itself too early and write again what it wrote already.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}}
}

// unhurried reads for a map function, which has no use for waiting: whom it wakes
// waits for itself.
const unhurried = client.DisableReadYourWritesConsistency

// Setup adds all reconcilers to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	var err error
	if options.storage, err = newStorage(ctx, options); err != nil {
		return err
	}
	options.shared = newLiveReads(liveOf(mgr))
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if options.Namespace != "" {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &storagev1.CSIStorageCapacity{}, capacitiesByDisk, diskOfCapacity); err != nil {
			return fmt.Errorf("indexing capacities by disk: %w", err)
		}
	}
	claims := NewPersistentVolumeClaimReconciler(mgr, options)
	reconcilers := []interface{ SetupWithManager(ctrl.Manager) error }{
		claims,
		NewPersistentVolumeReconciler(mgr, options, claims.index),
		NewStorageBackendReconciler(mgr, options),
		NewStorageBackendAuditor(mgr, options),
		NewLocalDiskReconciler(mgr, options),
		NewLocalVolumeReconciler(mgr, options),
		NewLocalVolumeAdopter(mgr, options),
		NewVolumeAttachmentReconciler(mgr, options),
		NewVolumeAttachmentComparer(mgr, options),
	}
	if options.Scope == ClusterScope {
		reconcilers = append(reconcilers, NewPodReconciler(mgr), NewVolumeAttributesClassReconciler(mgr), NewNodeReconciler(mgr, options))
	}
	for _, reconciler := range reconcilers {
		if err := reconciler.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up %T: %w", reconciler, err)
		}
	}
	return nil
}

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

// handleOf is the driver and handle of a volume with a csi source.
func handleOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.CSI == nil {
		return nil
	}
	return []string{volume.Key(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)}
}

// claimRefOf is the namespace and name of the claim that a volume is tied to.
func claimRefOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.ClaimRef == nil {
		return nil
	}
	return []string{pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name}
}

// backendOf is the name of the StorageBackend that a volume lies in.
func backendOf(pv *corev1.PersistentVolume) []string {
	if pv.Spec.CSI == nil || pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute] == "" {
		return nil
	}
	return []string{pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute]}
}
