// Package growth finishes the expansion of volumes that are mounted on this node: it has
// their file systems grown and writes the new capacity to the claims' status, as a kubelet
// does. It never changes what a claim requests, and grows no volume that isn't mounted here.
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

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// growthConflictWait is how soon what somebody else wrote meanwhile is read.
	growthConflictWait = 200 * time.Millisecond
)

// Options are what a Growth is made of.
type Options struct {
	// Volumes is the volume types that are served as directories, and Devices those
	// that are served as block devices.
	Volumes, Devices volumes.Registry
	// Mounter reads the mount table.
	Mounter mount.Mounter
	// Client reads pods from a cache that holds this node's, and writes.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Events tells users.
	Events events.EventRecorder
	// Numbers counts what is done; nil: it isn't counted.
	Numbers *metrics.Metrics
	// Clock is the time.
	Clock clock.PassiveClock
}

// Growth finishes the expansion of volumes that are mounted on this node: it grows
// their file systems and says in the claims' status what there is, as a kubelet does.
// Its key is the claim. A node may only get claims, not watch them: so it looks when
// a pod's volumes are mounted, when storage grows on this node, and now and then.
type Growth struct {
	Options
	looks Looks
	// settled are claims whose volumes' file systems grow when the claim says so, and not
	// before: until then the volume need not be read.
	settled settled
}

// New returns the reconciler of the claims of a node's pods.
func New(options Options) *Growth { return &Growth{Options: options} }

// growing is a volume that is mounted on this node, and may grow.
type growing struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	grower volumes.Grower
	pods   []corev1.Pod
	block  bool
}

// Reconcile grows the volume of one claim, if it is this node's turn.
func (g *Growth) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found, err := g.find(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	if found == nil {
		g.looks.Forget(request.String())
		g.settled.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	switch {
	case found.block:
		// Its expansion is finished elsewhere: there is no file system to grow.
		err = g.growDevice(ctx, found)
	case isNodesTurn(found.claim):
		err = g.growFileSystem(ctx, found)
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: growthConflictWait}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: g.looks.Next(request.String(), mayYetGrow(found.claim))}, nil
}

// find finds out what a claim's volume is; nil if it can't grow, or isn't mounted on
// this node so that it can be written. Of a claim that asks for no more than it has, the
// volume may be left out.
func (g *Growth) find(ctx context.Context, request ctrl.Request) (*growing, error) {
	found := &growing{claim: &corev1.PersistentVolumeClaim{}, volume: &corev1.PersistentVolume{}}
	var err error
	if found.pods, err = podclaims.PodsUsing(ctx, g.Client, request.NamespacedName); err != nil || len(found.pods) == 0 {
		return nil, err
	}
	if there, err := g.read(ctx, request.NamespacedName, found.claim); err != nil || !there {
		return nil, err
	}
	if g.settled.has(request.NamespacedName, found.claim.Spec.VolumeName) && !mayYetGrow(found.claim) {
		return found, nil
	}
	if there, err := g.read(ctx, client.ObjectKey{Name: found.claim.Spec.VolumeName}, found.volume); err != nil || !there {
		return nil, err
	}
	spec := volumes.Spec{PersistentVolume: found.volume}
	types := g.Volumes
	if found.block = spec.IsBlock(); found.block {
		types = g.Devices
	}
	plugin, _ := types.For(spec)
	grower, grows := plugin.(volumes.Grower)
	tied := resolve.CheckVolume(found.volume, found.claim) == nil
	if !grows || !tied {
		return nil, nil
	}
	found.grower = grower
	table, err := g.Mounter.Table()
	if err != nil || !grower.CanGrow(table, found.volume) {
		return nil, err
	}
	if !found.block {
		g.settled.add(request.NamespacedName, found.volume.Name)
	}
	return found, nil
}

// read reads an object live, and says whether it is there for this node.
func (g *Growth) read(ctx context.Context, key client.ObjectKey, object client.Object) (bool, error) {
	if key.Name == "" {
		return false, nil
	}
	err := g.Live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s to see whether it grows: %w", key, err)
	}
	return true, nil
}

func (g *Growth) growDevice(ctx context.Context, found *growing) error {
	ended := g.Numbers.Begin(found.grower.Name(), operations.Growing)
	_, err := found.grower.Grow(ctx, found.volume)
	ended(metrics.OutcomeOf(err, false))
	return err
}

// growFileSystem says that it begins, grows, and says what there is. After a crash
// each step is done again, which changes nothing where it was done.
func (g *Growth) growFileSystem(ctx context.Context, found *growing) error {
	if err := g.write(ctx, found.claim, setGrowing); err != nil {
		return err
	}
	wanted := found.volume.Spec.Capacity[corev1.ResourceStorage]
	ended := g.Numbers.Begin(found.grower.Name(), operations.Growing)
	bytes, err := found.grower.Grow(ctx, found.volume)
	ended(metrics.OutcomeOf(err, false))
	if err == nil && bytes < wanted.Value() {
		err = fmt.Errorf("the storage of volume %s has %s on this node, and %s are asked for",
			found.volume.Name, resource.NewQuantity(bytes, resource.BinarySI), wanted.String())
	}
	if err != nil {
		return g.fail(ctx, found, err)
	}
	if err := g.write(ctx, found.claim, func(claim *corev1.PersistentVolumeClaim) { setGrown(claim, wanted) }); err != nil {
		return err
	}
	g.tellGrown(found, wanted)
	return nil
}

// fail says what went wrong. What no repeat can mend, and what failed before and is
// asked for no more, is given up, so that another size can be tried.
func (g *Growth) fail(ctx context.Context, found *growing, problem error) error {
	wanted := found.volume.Spec.Capacity[corev1.ResourceStorage]
	asked := found.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	hopeless := errors.Is(problem, volumes.ErrNotSupported) || hasFailedOnNode(found.claim) && asked.Cmp(wanted) != 0
	before := found.claim.DeepCopy()
	err := g.write(ctx, found.claim, func(claim *corev1.PersistentVolumeClaim) { setGrowthFailed(claim, problem, hopeless, g.Clock.Now()) })
	if err == nil && !slices.Equal(before.Status.Conditions, found.claim.Status.Conditions) {
		g.tellNotGrown(found, problem)
	}
	return err
}

// write changes a claim's status, if that changes it. Who wrote meanwhile is read
// first: that is a conflict.
func (g *Growth) write(ctx context.Context, claim *corev1.PersistentVolumeClaim, set func(*corev1.PersistentVolumeClaim)) error {
	before := claim.DeepCopy()
	set(claim)
	if isSameStatus(before, claim) {
		return nil
	}
	// Strategic: a merge patch would replace the conditions that others write.
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := g.Client.Status().Patch(ctx, claim, patch); err != nil {
		return fmt.Errorf("writing how claim %s grows: %w", client.ObjectKeyFromObject(claim), err)
	}
	return nil
}

func (g *Growth) tellGrown(found *growing, has resource.Quantity) {
	const note = "the file system of volume %s has grown: the claim has %s now"
	for i := range found.pods {
		g.Events.Eventf(&found.pods[i], found.claim, corev1.EventTypeNormal, fileSystemGrown, "Expanding", note, found.volume.Name, has.String())
	}
	g.Events.Eventf(found.claim, nil, corev1.EventTypeNormal, fileSystemGrown, "Expanding", note, found.volume.Name, has.String())
}

func (g *Growth) tellNotGrown(found *growing, problem error) {
	for i := range found.pods {
		g.Events.Eventf(&found.pods[i], found.claim, corev1.EventTypeWarning, growthFailed, "Expanding", "%v", problem)
	}
	g.Events.Eventf(found.claim, nil, corev1.EventTypeWarning, growthFailed, "Expanding", "%v", problem)
}
