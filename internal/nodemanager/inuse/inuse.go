// Package inuse writes to the node's status which disks the node uses, so that no controller
// detaches them. It does so before a disk is touched, and until it is unmounted. Entries of other
// components stay as they are. It never attaches or mounts anything.
package inuse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/volume"
)

const (
	// reportAttempts is how often a report is written again after a conflict with another
	// writer of the same status.
	reportAttempts = 10
	// reportRetry is how soon a failed report is repeated.
	reportRetry = 2 * time.Second
	// comparePeriod is how often the last report is compared with what is mounted. A disk that
	// something else than a pod had is unmounted after its last pod is gone.
	comparePeriod = time.Minute
)

// Disks are volumes that a node has only while they are attached to it.
type Disks interface {
	// Serves reports whether a volume is one of them.
	Serves(ctx context.Context, volume *corev1.PersistentVolume) bool
	// Drivers returns their CSI drivers.
	Drivers() []string
	// InUse returns the disks that are mounted on this node, or may be. It must be right after
	// any crash.
	InUse() ([]corev1.UniqueVolumeName, error)
	// Watch calls changed each time that disks came or went, until the context ends.
	Watch(ctx context.Context, changed func()) error
}

// Options are what an InUse is made of.
type Options struct {
	// NodeName is the node whose status is written.
	NodeName string
	// Disks are the volumes that must be attached; nil: none are.
	Disks Disks
	// Client writes, and Live reads from the API server itself.
	Client client.Client
	Live   client.Reader
}

// InUse keeps volumesInUse of the node's status, so that no controller detaches a disk in use.
// In use are the attached disks that pods want, before they are touched, and the mounted ones,
// until they are unmounted. Entries of other drivers stay as they are.
//
// A wanted disk that isn't attached isn't in use. It may be about to be detached from a deleted
// pod: the detachment and the new pod would wait for each other.
type InUse struct {
	Options
	mu     sync.Mutex
	wanted map[types.UID]map[string]corev1.UniqueVolumeName
	// reported are the disks of the last report, and attached the node's volumesAttached then.
	reported []corev1.UniqueVolumeName
	attached []corev1.AttachedVolume
	// reporting serialises reports. One report covers all callers that waited for it.
	reporting sync.Mutex
	changed   chan struct{}
}

// New returns an InUse that has reported nothing yet.
func New(options Options) *InUse {
	return &InUse{Options: options, wanted: map[types.UID]map[string]corev1.UniqueVolumeName{}, changed: make(chan struct{}, 1)}
}

// Want registers the disk of a pod's volume. The first report after it is attached has it.
func (u *InUse) Want(pod types.UID, volume string, name corev1.UniqueVolumeName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.wanted[pod] == nil {
		u.wanted[pod] = map[string]corev1.UniqueVolumeName{}
	}
	u.wanted[pod][volume] = name
}

// Forget drops a pod of which nothing is left. The change is reported soon.
func (u *InUse) Forget(pod types.UID) {
	if u.Disks == nil {
		return
	}
	u.mu.Lock()
	delete(u.wanted, pod)
	u.mu.Unlock()
	u.Compare(nil)
}

// Release drops a pod's volume, which the pod won't touch before it wants it again. The change is
// reported soon.
func (u *InUse) Release(pod types.UID, volume string) {
	u.mu.Lock()
	delete(u.wanted[pod], volume)
	u.mu.Unlock()
	u.Compare(nil)
}

// Compare triggers a report if the disks in use differ from the last report, or from the node's
// status; node may be nil.
func (u *InUse) Compare(node *corev1.Node) {
	u.mu.Lock()
	if node != nil {
		u.attached = node.Status.VolumesAttached
	}
	attached := u.attached
	u.mu.Unlock()
	names, err := u.names(attached)
	u.mu.Lock()
	stale := err != nil || !slices.Equal(names, u.reported)
	u.mu.Unlock()
	if node != nil && err == nil {
		stale = stale || !slices.Equal(names, slices.Sorted(slices.Values(u.oursIn(node))))
	}
	if stale {
		u.reportSoon()
	}
}

// oursIn returns the entries of our drivers in a node's volumesInUse.
func (u *InUse) oursIn(node *corev1.Node) []corev1.UniqueVolumeName {
	return slices.DeleteFunc(slices.Clone(node.Status.VolumesInUse), func(name corev1.UniqueVolumeName) bool { return !u.isOurs(name) })
}

// Pods returns the pods that want disks.
func (u *InUse) Pods() []types.UID {
	u.mu.Lock()
	defer u.mu.Unlock()
	pods := make([]types.UID, 0, len(u.wanted))
	for pod := range u.wanted {
		pods = append(pods, pod)
	}
	return pods
}

func (u *InUse) reportSoon() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// Run reports at the start, which is the first report after the node booted. It reports again after
// each change, and when something else is mounted than was reported.
func (u *InUse) Run(ctx context.Context) error {
	compare := time.NewTicker(comparePeriod)
	defer compare.Stop()
	go func() {
		for {
			select {
			case <-compare.C:
				u.Compare(nil)
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		next := u.changed
		var again <-chan time.Time
		if _, err := u.Report(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "reporting the disks that are in use")
			again = time.After(reportRetry)
		}
		select {
		case <-next:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// Report writes which disks are in use, and returns the node as of that write. Its volumesAttached
// is from after all of them were in use.
func (u *InUse) Report(ctx context.Context) (*corev1.Node, error) {
	u.reporting.Lock()
	defer u.reporting.Unlock()
	for range reportAttempts {
		node, err := u.report(ctx)
		if !apierrors.IsConflict(err) {
			return node, err
		}
	}
	return nil, fmt.Errorf("writing which disks node %s uses: another writer changes the same status all the time", u.NodeName)
}

func (u *InUse) report(ctx context.Context) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := u.Live.Get(ctx, client.ObjectKey{Name: u.NodeName}, node); err != nil {
		return nil, fmt.Errorf("reading node %s to say which disks it uses: %w", u.NodeName, err)
	}
	names, err := u.names(node.Status.VolumesAttached)
	if err != nil {
		return nil, err
	}
	changed := node.DeepCopy()
	u.set(changed, names)
	if !equality.Semantic.DeepEqual(node, changed) {
		// With resourceVersion: the patch replaces the whole list.
		patch := client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
		if err := u.Client.Status().Patch(ctx, changed, patch); err != nil {
			return nil, fmt.Errorf("writing which disks node %s uses: %w", u.NodeName, err)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reported, u.attached = names, node.Status.VolumesAttached
	return changed, nil
}

// set sets volumesInUse in memory, and the annotation that has the controller attach disks to the
// node.
func (u *InUse) set(node *corev1.Node, ours []corev1.UniqueVolumeName) {
	names := slices.DeleteFunc(node.Status.VolumesInUse, func(name corev1.UniqueVolumeName) bool {
		return u.isOurs(name) && !slices.Contains(ours, name)
	})
	for _, name := range ours {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	node.Status.VolumesInUse = names
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[attach.ManagedAnnotation] = "true"
}

// names returns the disks in use: wanted and attached, or still mounted. A reported disk may be
// about to be mounted: it stays in use while a pod wants it, even if volumesAttached lost it.
func (u *InUse) names(attached []corev1.AttachedVolume) ([]corev1.UniqueVolumeName, error) {
	// Wanted ones first: a disk is unmounted before it is wanted no more.
	u.mu.Lock()
	var names []corev1.UniqueVolumeName
	for _, volumes := range u.wanted {
		for _, name := range volumes {
			if IsAttached(attached, name) || slices.Contains(u.reported, name) {
				names = append(names, name)
			}
		}
	}
	u.mu.Unlock()
	mounted, err := u.Disks.InUse()
	if err != nil {
		return nil, err
	}
	names = append(names, mounted...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (u *InUse) isOurs(name corev1.UniqueVolumeName) bool {
	return slices.ContainsFunc(u.Disks.Drivers(), func(driver string) bool {
		return strings.HasPrefix(string(name), string(volume.UniqueName(driver, "")))
	})
}
