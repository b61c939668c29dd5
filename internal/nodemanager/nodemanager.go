// Package nodemanager is the node-side volume manager: it mounts the volumes of
// the pods of one node and takes them away again, where no kubelet does.
// cmd/node-agent starts it with --follow-pods.
//
// Desired state comes from the pods; actual state is read from the mount table
// and the directory tree in every pass. One pass per pod compares the two and
// hands what is missing or too much to Operations, which mounts and unmounts
// beside it. The volume types are plug-ins: see package volumes.
//
// What must be attached to the node is said to be in use before it is touched, and
// until it is unmounted: see InUse.
//
// It never removes what outlives a pod, and never acts on a pod's absence from a
// cache: before a teardown, the pod is read live.
package nodemanager

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/inuse"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// slowOperation is when a mount that still runs is worth a word to the user.
	slowOperation = 5 * time.Second
	// compareInterval is how often pods and directories are compared although
	// nothing is known to have changed.
	compareInterval = 5 * time.Minute
)

// Options are what the node manager is made of.
type Options struct {
	// NodeName is the node whose pods are served.
	NodeName string
	// Tree is where their directories lie.
	Tree poddir.Tree
	// Volumes is the volume types that are served as directories, and Devices those
	// that are served as block devices.
	Volumes, Devices volumes.Registry
	// Disks are those of their volumes that must be attached to the node first; nil:
	// none are.
	Disks inuse.Disks
	// Objects reads what volumes show that are made of objects of the API server, and
	// what variables in subPathExpr are taken from; nil: no type in Volumes shows any, and
	// those are plain values and fields of the pod.
	Objects Objects
	// Mounter mounts parts of volumes, and reads the mount table.
	Mounter mount.Mounter
	// WatchMounts tells each time that the mount table changed, until the context ends;
	// nil: what others unmount is noticed at the next comparison.
	WatchMounts func(ctx context.Context, tell func()) error
	// Client reads pods from a cache that holds this node's, indexed by
	// PodUIDIndex, and writes.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Events tells users.
	Events events.EventRecorder
	// Numbers counts what is done; nil: nobody asks.
	Numbers *metrics.Metrics
	// Clock tells how long operations take.
	Clock clock.WithDelayedExecution
}

// PodUIDIndex is the index of the pod cache that the reconciler looks pods up in.
const PodUIDIndex = "metadata.uid"

// PodUID is the value of a pod in PodUIDIndex.
func PodUID(object client.Object) []string {
	return []string{string(object.(*corev1.Pod).UID)}
}
