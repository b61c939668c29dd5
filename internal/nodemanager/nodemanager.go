// Package nodemanager is the node-side volume manager: it mounts and unmounts the volumes of
// one node's pods, where no kubelet does. cmd/node-agent starts it with --follow-pods.
//
// The desired state comes from the pods. The actual state is read from the mount table and
// the directory tree in every pass. A pass over a pod compares the two, and hands each
// difference to package operations, which mounts and unmounts in the background. The volume
// types are plug-ins: see package volumes.
//
// A disk is reported as in use before it is touched, and until it is unmounted: see package
// inuse.
//
// The node manager never removes what outlives a pod, and never acts on a pod's absence from a
// cache. Before a teardown, the pod is read live.
package nodemanager

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/inuse"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// slowOperation is after how long a running operation is reported in the pod's condition.
const slowOperation = 5 * time.Second

type queue = workqueue.TypedRateLimitingInterface[types.UID]

// Options are what the node manager is made of.
type Options struct {
	// NodeName is the node whose pods are served.
	NodeName string
	// Tree is where their directories lie.
	Tree poddir.Tree
	// Volumes are the types of filesystem volumes, and Devices those of block volumes.
	Volumes, Devices volumes.Registry
	// Disks are the volumes that must be attached to the node first; nil: none.
	Disks inuse.Disks
	// Objects reads projected content, and the variables of subPathExpr; nil: Volumes has no
	// projected type, and variables are plain values and fields of the pod.
	Objects Objects
	// Mounter mounts parts of volumes, and reads the mount table.
	Mounter mount.Mounter
	// WatchMounts calls changed after each change of the mount table, until the context ends;
	// nil: an unmount by hand is noticed at the next comparison.
	WatchMounts func(ctx context.Context, changed func()) error
	// Client writes, and reads pods from a cache of this node's, indexed by podclaims.Index.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Events records events of pods.
	Events events.EventRecorder
	// Numbers are the metrics; nil: none.
	Numbers *metrics.Metrics
	// Clock measures operations and waits.
	Clock clock.WithDelayedExecution
}

// Objects reads the objects of the API server that volumes project, and watches them.
type Objects interface {
	content.Reader
	// OnChange sets what is called with each pod whose objects changed. It returns at once.
	OnChange(changed func(types.UID))
	// Forget drops a pod whose volumes project nothing any more.
	Forget(pod types.UID)
	// Run watches until the context ends.
	Run(ctx context.Context) error
}
