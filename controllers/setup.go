// Package controllers is the table of contents of the manager: Setup makes every reconciler
// from the same Dependencies. Each kind has a package of its own:
//
//	persistentvolumeclaim   match, bind, provision and expand claims, and protect them
//	persistentvolume        phases of volumes, their protection, reclaim and recycling
//	volumeattachment        attach and detach, and compare with what backends say is attached
//	node                    decide which volumes a node gets and gives up
//	storageclass            release deleted classes that a CSI driver's call needs
//	storagebackend          probe backends, keep their StorageClasses; audit: orphans, lost volumes
//	csicapacity             the room of CSI drivers, for the scheduler
//	nodevolume              NodeDisks and their free space, NodeVolumes without a node
//	ephemeral               make the claims of generic ephemeral volumes
//	volumesnapshot          make and bind contents of VolumeSnapshots, where no snapshot-controller does
//	volumegroupsnapshot     the same for VolumeGroupSnapshots, and their members
//	volumesnapshotcontent   make and delete snapshots, once their CRDs are there
//	volumegroupsnapshotcontent   make and delete snapshots of several volumes
//	volumeattributesclass   protect VolumeAttributesClasses in use
//
// Reconcilers read, call and write. Decisions are in internal/binder and internal/attach;
// storage is made in internal/backend. They run in the manager and never mount.
package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/prometheus/client_golang/prometheus"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/csicapacity"
	"github.com/stowage-dev/stowage/controllers/ephemeral"
	"github.com/stowage-dev/stowage/controllers/node"
	"github.com/stowage-dev/stowage/controllers/nodevolume"
	"github.com/stowage-dev/stowage/controllers/persistentvolume"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/starter"
	"github.com/stowage-dev/stowage/controllers/storagebackend"
	"github.com/stowage-dev/stowage/controllers/storagebackend/audit"
	"github.com/stowage-dev/stowage/controllers/storageclass"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/controllers/volumeattachment/comparison"
	"github.com/stowage-dev/stowage/controllers/volumeattributesclass"
	"github.com/stowage-dev/stowage/controllers/volumegroupsnapshot"
	"github.com/stowage-dev/stowage/controllers/volumegroupsnapshotcontent"
	"github.com/stowage-dev/stowage/controllers/volumesnapshot"
	"github.com/stowage-dev/stowage/controllers/volumesnapshotcontent"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/leadership"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/statemetrics"
	"github.com/stowage-dev/stowage/internal/waiting"
)

// Options are what the reconcilers need beside the manager.
type Options struct {
	// Scope decides which claims and volumes are reconciled.
	Scope reconciler.Scope
	// BindSnapshots is whether VolumeSnapshots and their groups are bound, too, instead of by the stock snapshot-controller. It needs
	// ClusterScope.
	BindSnapshots bool
	// CSISnapshotter are drivers of Stowage's own whose VolumeSnapshotContents are left to csi-snapshotter.
	CSISnapshotter []string
	// Lease is the one by which the manager leads. Nil: nothing shows whether another one acts, too, and more is read live.
	Lease *leadership.Lease
	// Backends are the kinds of storage that are served.
	Backends *backend.Registry
	// Recycler empties volumes of policy Recycle that people made. Nil: their phase becomes
	// Failed.
	Recycler backend.Recycler
	// Namespace is the manager's own, where it publishes the free space of nodes, and of CSI drivers.
	// Empty: it publishes nothing.
	Namespace string
	// ForceDetachAfter is how long a node must have been not Ready, or gone, until volumes of
	// foreign drivers are detached from it by force. A StorageBackend sets it for its own.
	ForceDetachAfter time.Duration
	// AttachmentCheckInterval is how often the attachments in backends are compared with the
	// recorded ones. Zero: every minute.
	AttachmentCheckInterval time.Duration
	// Clock returns the time. Nil: the machine's.
	Clock clock.PassiveClock
	// Metrics registers the metrics of backends' calls. Nil: they are not counted.
	Metrics prometheus.Registerer
}

// ClientOptions are those of the manager's client. A reconcile waits until the cache shows
// this process's writes to the object. Without that, every bind would trigger a reconcile on
// stale data, which repeats the write.
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
	if err := errors.Join(index.Add(ctx, mgr.GetFieldIndexer()), attachintent.AddIndex(ctx, mgr.GetFieldIndexer())); err != nil {
		return err
	}
	if err := deps.Reads.Follow(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if options.Namespace != "" {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &storagev1.CSIStorageCapacity{}, index.CapacitiesByDisk, index.DiskOfCapacity); err != nil {
			return fmt.Errorf("indexing capacities by disk: %w", err)
		}
	}
	claims := persistentvolumeclaim.New(deps)
	snapshots, groups := snapshotStarters(ctx, mgr, options, deps, claims)
	reconcilers := []interface{ SetupWithManager(ctrl.Manager) error }{
		claims,
		persistentvolume.New(deps, claims.Index),
		storagebackend.New(deps, snapshots.Missing),
		audit.New(deps),
		nodevolume.NewDiskReconciler(deps),
		nodevolume.New(deps),
		nodevolume.NewAdopter(deps),
		volumeattachment.New(deps),
		comparison.New(deps),
		storageclass.New(deps),
		snapshots,
		groups,
	}
	if options.Namespace != "" {
		reconcilers = append(reconcilers, csicapacity.New(deps), csicapacity.NewRefresher(deps))
	}
	if options.Scope == reconciler.ClusterScope {
		reconcilers = append(reconcilers, ephemeral.New(deps), volumeattributesclass.New(deps), node.New(deps))
	}
	for _, added := range reconcilers {
		if err := added.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up %T: %w", added, err)
		}
	}
	return nil
}

// snapshotStarters start the reconcilers of snapshots, and of groups of them, once the API server serves these.
func snapshotStarters(
	ctx context.Context, mgr ctrl.Manager, options Options, deps reconciler.Dependencies, claims *persistentvolumeclaim.Reconciler,
) (snapshots, groups *starter.Starter) {
	kept := snapshotbinding.New(deps.Client, deps.Live)
	// Either starter may be the first. The index has to be there before the informer.
	indexed := sync.OnceValue(func() error {
		err := index.AddContents(ctx, mgr.GetFieldIndexer())
		if options.BindSnapshots {
			err = errors.Join(err, index.AddSnapshots(ctx, mgr.GetFieldIndexer()))
		}
		return err
	})
	snapshots = starter.New(deps.Live, snapshotAPI(), func() error {
		bound := indexed()
		if options.BindSnapshots {
			bound = errors.Join(bound, volumesnapshot.New(deps, kept).SetupWithManager(mgr))
		}
		return errors.Join(bound, claims.WatchSnapshots(), volumesnapshotcontent.New(deps).SetupWithManager(mgr))
	})
	groups = starter.New(deps.Live, groupSnapshotAPI(options.BindSnapshots), func() error {
		var bound error
		if options.BindSnapshots {
			bound = errors.Join(indexed(), volumegroupsnapshot.New(deps, kept).SetupWithManager(mgr))
		}
		return errors.Join(bound, volumegroupsnapshotcontent.New(deps).SetupWithManager(mgr))
	})
	return snapshots, groups
}

// snapshotAPI is what a manager needs to serve snapshots.
func snapshotAPI() starter.API {
	return starter.API{
		Of: "snapshots", Version: "snapshot.storage.k8s.io/v1",
		Lists: []client.ObjectList{&snapshotv1.VolumeSnapshotContentList{}, &snapshotv1.VolumeSnapshotList{}},
	}
}

// groupSnapshotAPI is what a manager needs to serve snapshots of several volumes, and to bind them.
func groupSnapshotAPI(binds bool) starter.API {
	api := starter.API{
		Of: "group snapshots", Version: "groupsnapshot.storage.k8s.io/v1",
		Lists: []client.ObjectList{&groupsnapshotv1.VolumeGroupSnapshotContentList{}},
	}
	if binds {
		api.Lists = append(api.Lists, &groupsnapshotv1.VolumeGroupSnapshotList{}, &snapshotv1.VolumeSnapshotContentList{}, &snapshotv1.VolumeSnapshotList{})
	}
	return api
}

// dependenciesOf returns what a manager's reconcilers are made of.
func dependenciesOf(ctx context.Context, mgr ctrl.Manager, options Options) (reconciler.Dependencies, error) {
	live := liveread.Of(mgr)
	var waits *waiting.Claims
	backends, err := opener.New(ctx, options.Backends, options.Recycler, options.Metrics)
	if err == nil && options.Metrics != nil {
		waits, err = serveMetrics(mgr, options)
	}
	return reconciler.Dependencies{
		Client: mgr.GetClient(), Live: live, Reads: liveread.New(live), Storage: backends, Events: event.RecorderOf(mgr),
		Patience: persistentvolumeclaim.UntilReported, Clock: options.Clock, Scope: options.Scope, Namespace: options.Namespace,
		CSISnapshotter: options.CSISnapshotter,
		Prepared:       attachintent.NewWrites(options.Clock, options.Lease.IsHeld), Deleted: attachintent.NewWrites(options.Clock, options.Lease.IsHeld), Leads: options.Lease.IsHeld, Term: options.Lease.Term,
		Waiting: waits, ForceDetachAfter: options.ForceDetachAfter, AttachmentCheckInterval: options.AttachmentCheckInterval,
	}, err
}

// serveMetrics serves what the objects of the cluster say, and the claims that wait.
func serveMetrics(mgr ctrl.Manager, options Options) (*waiting.Claims, error) {
	if err := statemetrics.Register(options.Metrics, mgr.GetClient(), mgr.GetCache()); err != nil {
		return nil, err
	}
	return waiting.New(options.Metrics, options.Clock)
}
