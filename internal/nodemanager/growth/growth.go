// Package growth finishes the expansion of volumes that are mounted on this node. It grows their file
// systems and writes the new capacity to the claims' status, as a kubelet does. It never changes what
// a claim requests, and grows no volume that isn't mounted here.
package growth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// growthConflictWait is how soon a claim is read again after a conflict.
const growthConflictWait = 200 * time.Millisecond

// Options are what a Growth is made of.
type Options struct {
	// Volumes are the types of filesystem volumes, and Devices those of block volumes.
	Volumes, Devices volumes.Registry
	// Mounter reads the mount table.
	Mounter mount.Mounter
	// Client reads pods from a cache that holds this node's, and writes.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Events records events of claims and pods.
	Events events.EventRecorder
	// Numbers are the metrics; nil: none.
	Numbers *metrics.Metrics
	// Clock is the time.
	Clock clock.PassiveClock
}

// Growth is the reconciler. Its key is the claim. A node may only get claims, not watch them. It
// reads a claim when a pod's volumes are mounted, when storage grows on this node, and regularly.
type Growth struct {
	Options
	backoff backoff
	// growable are claims whose volumes can grow on this node: the volume is read again only when
	// the claim is to grow.
	growable growable
	turns    turns
}

// New returns the reconciler of the claims of a node's pods.
func New(options Options) *Growth { return &Growth{Options: options} }

// growing is a volume that is mounted on this node and can grow.
type growing struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	grower volumes.Grower
	pods   []corev1.Pod
	block  bool
}

// Reconcile grows the volume of one claim, if the claim waits for its node.
func (g *Growth) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found, err := g.find(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	if found == nil {
		g.backoff.forget(request.String())
		g.growable.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if found.block || isPendingOnNode(found.claim) {
		driver := driverOf(found.volume)
		if !g.turns.begin(driver, request.NamespacedName) {
			return ctrl.Result{RequeueAfter: lastGrowthWait}, nil
		}
		defer g.turns.end(driver)
		err = g.grow(ctx, found)
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: growthConflictWait}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: g.backoff.next(request.String(), mayGrow(found.claim))}, nil
}

// find finds the volume of a claim; nil if it can't grow, or isn't mounted read-write on this node.
// For a claim that requests no more than it has, the volume may be empty.
func (g *Growth) find(ctx context.Context, request ctrl.Request) (*growing, error) {
	found := &growing{claim: &corev1.PersistentVolumeClaim{}, volume: &corev1.PersistentVolume{}}
	var err error
	if found.pods, err = podclaims.PodsUsing(ctx, g.Client, request.NamespacedName); err != nil || len(found.pods) == 0 {
		return nil, err
	}
	if exists, err := g.read(ctx, request.NamespacedName, found.claim); err != nil || !exists {
		return nil, err
	}
	if g.growable.has(request.NamespacedName, found.claim.Spec.VolumeName) && !mayGrow(found.claim) {
		return found, nil
	}
	if exists, err := g.read(ctx, client.ObjectKey{Name: found.claim.Spec.VolumeName}, found.volume); err != nil || !exists {
		return nil, err
	}
	spec := volumes.Spec{PersistentVolume: found.volume}
	types := g.Volumes
	if found.block = spec.IsBlock(); found.block {
		types = g.Devices
	}
	plugin, _ := types.For(spec)
	grower, grows := plugin.(volumes.Grower)
	if bound := resolve.CheckVolume(found.volume, found.claim) == nil; !grows || !bound {
		return nil, nil
	}
	found.grower = grower
	table, err := g.Mounter.Table()
	if err != nil || !grower.CanGrow(table, found.volume) {
		return nil, err
	}
	if !found.block {
		g.growable.add(request.NamespacedName, found.volume.Name)
	}
	return found, nil
}

// read reads an object live, and reports whether it exists and this node may read it.
func (g *Growth) read(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	if key.Name == "" {
		return false, nil
	}
	err := g.Live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s for its expansion: %w", key, err)
	}
	return true, nil
}

func (g *Growth) grow(ctx context.Context, found *growing) error {
	if found.block {
		// It has no file system: the controller finishes its expansion.
		return g.growDevice(ctx, found)
	}
	return g.growFileSystem(ctx, found)
}

func (g *Growth) growDevice(ctx context.Context, found *growing) error {
	ended := g.Numbers.Begin(found.grower.Name(), operations.Growing)
	_, err := found.grower.Grow(ctx, found.volume)
	ended(metrics.OutcomeOf(err, false))
	return err
}

// growFileSystem records the start, grows, and records the result. After a crash, each step is
// repeated, without effect where it was done.
func (g *Growth) growFileSystem(ctx context.Context, found *growing) error {
	if err := g.write(ctx, found.claim, setGrowing); err != nil {
		return err
	}
	wanted := found.volume.Spec.Capacity[corev1.ResourceStorage]
	ended := g.Numbers.Begin(found.grower.Name(), operations.Growing)
	bytes, err := found.grower.Grow(ctx, found.volume)
	ended(metrics.OutcomeOf(err, false))
	if err == nil && bytes < wanted.Value() {
		err = fmt.Errorf("the storage of volume %s has %s on this node, and %s are requested",
			found.volume.Name, resource.NewQuantity(bytes, resource.BinarySI), wanted.String())
	}
	if err != nil {
		return g.fail(ctx, found, err)
	}
	if err := g.write(ctx, found.claim, func(claim *corev1.PersistentVolumeClaim) { setGrown(claim, wanted) }); err != nil {
		return err
	}
	g.recordGrown(found, wanted)
	return nil
}

// fail records an error. An expansion is given up if no retry can succeed. It is also given up if
// it failed before and the claim now requests another size. Then that size can be tried.
func (g *Growth) fail(ctx context.Context, found *growing, problem error) error {
	wanted := found.volume.Spec.Capacity[corev1.ResourceStorage]
	asked := found.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	infeasible := errors.Is(problem, volumes.ErrNotSupported) || hasFailedOnNode(found.claim) && asked.Cmp(wanted) != 0
	before := found.claim.DeepCopy()
	err := g.write(ctx, found.claim, func(claim *corev1.PersistentVolumeClaim) { setGrowthFailed(claim, problem, infeasible, g.Clock.Now()) })
	if err == nil && !slices.Equal(before.Status.Conditions, found.claim.Status.Conditions) {
		g.record(found, corev1.EventTypeWarning, event.VolumeResizeFailed, problem.Error())
	}
	return err
}

// write patches a claim's status, if set changes it. A concurrent write is a conflict.
func (g *Growth) write(ctx context.Context, claim *corev1.PersistentVolumeClaim, set func(*corev1.PersistentVolumeClaim)) error {
	before := claim.DeepCopy()
	set(claim)
	if isSameStatus(before, claim) {
		return nil
	}
	// Strategic: a merge patch would replace the conditions that others write.
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := g.Client.Status().Patch(ctx, claim, patch); err != nil {
		return fmt.Errorf("writing the expansion of claim %s: %w", client.ObjectKeyFromObject(claim), err)
	}
	return nil
}

// recordGrown records an event of the claim, and of each pod that uses it.
func (g *Growth) recordGrown(found *growing, has resource.Quantity) {
	g.record(found, corev1.EventTypeNormal, event.FileSystemResizeSuccessful,
		fmt.Sprintf("the file system of volume %s has grown: the claim has %s now", found.volume.Name, has.String()))
}

func (g *Growth) record(found *growing, kind, reason, note string) {
	for i := range found.pods {
		event.Unlogged(g.Events).Eventf(&found.pods[i], found.claim, kind, reason, "Expanding", "%s", note)
	}
	g.Events.Eventf(found.claim, nil, kind, reason, "Expanding", "%s", note)
}
