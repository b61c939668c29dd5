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
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
)

const ()

const ()

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
}

// ClientOptions are those of the manager's client. A reconcile waits until the
// cache has seen what this process wrote to the object: without that, every bind
// would wake itself too early and write again what it wrote already.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}}
}

// Setup adds all reconcilers to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	deps, err := dependenciesOf(ctx, mgr, options)
	if err != nil {
		return err
	}
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if options.Namespace != "" {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &storagev1.CSIStorageCapacity{}, capacitiesByDisk, diskOfCapacity); err != nil {
			return fmt.Errorf("indexing capacities by disk: %w", err)
		}
	}
	claims := NewPersistentVolumeClaimReconciler(deps)
	reconcilers := []interface{ SetupWithManager(ctrl.Manager) error }{
		claims,
		NewPersistentVolumeReconciler(deps, claims.index),
		NewStorageBackendReconciler(deps),
		NewStorageBackendAuditor(deps),
		NewLocalDiskReconciler(deps),
		NewLocalVolumeReconciler(deps),
		NewLocalVolumeAdopter(deps),
		NewVolumeAttachmentReconciler(deps),
		NewVolumeAttachmentComparer(deps),
	}
	if options.Scope == ClusterScope {
		reconcilers = append(reconcilers, NewPodReconciler(deps), NewVolumeAttributesClassReconciler(deps), NewNodeReconciler(deps))
	}
	for _, reconciler := range reconcilers {
		if err := reconciler.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up %T: %w", reconciler, err)
		}
	}
	return nil
}

// dependenciesOf is what a manager's reconcilers are made of.
func dependenciesOf(ctx context.Context, mgr ctrl.Manager, options Options) (Dependencies, error) {
	live := liveOf(mgr)
	opener, err := newStorage(ctx, options.Backends, options.Recycler, options.Metrics)
	return Dependencies{
		Client: mgr.GetClient(), Live: live, Reads: newLiveReads(live), Storage: opener, Events: recorderOf(mgr),
		Patience: untilTold, Clock: options.Clock, Scope: options.Scope, Namespace: options.Namespace,
		ForceDetachAfter: options.ForceDetachAfter, AttachmentCheckInterval: options.AttachmentCheckInterval,
	}, err
}

// Names of the cache's field indexes.
const ()
