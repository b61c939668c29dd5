// Package inuse writes to the node's status which disks the node uses, so that no controller
// detaches them: before a disk is touched, and until it is unmounted. Entries of other
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
	// reportAttempts is how often a report is written anew that others, who write the
	// same status, were quicker than.
	reportAttempts = 10
	// reportRetry is how soon a report is repeated that failed.
	reportRetry = 2 * time.Second
	// comparePeriod is how often the last report is compared with what is mounted: a disk that
	// something else than a pod had is unmounted after its last pod is gone.
	comparePeriod = time.Minute
)

// Disks are volumes that a node has only while they are attached to it.
type Disks interface {
	// Serves says whether a volume is one of them.
	Serves(volume *corev1.PersistentVolume) bool
	// Drivers are the CSI drivers of all that are.
	Drivers() []string
	// InUse is those that anything on this node is mounted from, or may be: it is
	// right after any crash.
	InUse() ([]corev1.UniqueVolumeName, error)
	// Watch tells each time that disks came or went, until the context ends.
	Watch(ctx context.Context, tell func()) error
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

// InUse says in the node's status which disks this node uses, so that nobody detaches
// them: those that pods want and that are attached, from before they are touched, and
// those that are mounted, until they aren't any more. What others say there stays.
//
// What is wanted and isn't attached isn't in use: it may be on its way out for a pod
// that went, and its detachment and the pod that wants it would wait for each other.
type InUse struct {
	Options
	mu     sync.Mutex
	wanted map[types.UID]map[string]corev1.UniqueVolumeName
	// reported is what the last report said of them, and attached what the node had then.
	reported []corev1.UniqueVolumeName
	attached []corev1.AttachedVolume
	// reporting lets one write at a time, for all who came meanwhile.
	reporting sync.Mutex
	changed   chan struct{}
}

// New returns an InUse that has said nothing yet.
func New(options Options) *InUse {
	return &InUse{Options: options, wanted: map[types.UID]map[string]corev1.UniqueVolumeName{}, changed: make(chan struct{}, 1)}
}

// Want notes which disk is behind a pod's volume. The first report after it is attached
// says so.
func (u *InUse) Want(pod types.UID, volume string, name corev1.UniqueVolumeName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.wanted[pod] == nil {
		u.wanted[pod] = map[string]corev1.UniqueVolumeName{}
	}
	u.wanted[pod][volume] = name
}

// Forget notes that nothing is left of a pod. What that changes is reported soon.
func (u *InUse) Forget(pod types.UID) {
	if u.Disks == nil {
		return
	}
	u.mu.Lock()
	delete(u.wanted, pod)
	u.mu.Unlock()
	u.Compare(nil)
}

// Renounce notes that a pod's volume isn't touched before it is wanted again. What that
// changes is reported soon.
func (u *InUse) Renounce(pod types.UID, volume string) {
	u.mu.Lock()
	delete(u.wanted[pod], volume)
	u.mu.Unlock()
	u.Compare(nil)
}

// Compare has it reported soon if something else is in use than was reported last, or
// than a node's status says.
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

// oursIn is what a node's status says of disks.
func (u *InUse) oursIn(node *corev1.Node) []corev1.UniqueVolumeName {
	return slices.DeleteFunc(slices.Clone(node.Status.VolumesInUse), func(name corev1.UniqueVolumeName) bool { return !u.isOurs(name) })
}

// Pods is those that want disks.
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

// Run reports at the start, which is the first that others hear of this node after it
// booted, whenever a pod has gone, and when something else is mounted than was reported.
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

// Report makes the node's status say which disks are in use, and returns the node as
// the API server has it then: what it says is attached was attached after all of them
// were in use.
func (u *InUse) Report(ctx context.Context) (*corev1.Node, error) {
	u.reporting.Lock()
	defer u.reporting.Unlock()
	for range reportAttempts {
		node, err := u.report(ctx)
		if !apierrors.IsConflict(err) {
			return node, err
		}
	}
	return nil, fmt.Errorf("writing which disks node %s uses: others write the same status all the time", u.NodeName)
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
		// The list is written as a whole: not over what another wrote meanwhile.
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

// set sets, in memory, what the node's status should say, and that a controller is to
// attach what its pods need.
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

// names is what is in use: wanted and attached, or mounted though nobody wants it any
// more. What was said to be in use may be about to be mounted, and stays in use until
// nobody wants it, whoever says that it isn't attached any more.
func (u *InUse) names(attached []corev1.AttachedVolume) ([]corev1.UniqueVolumeName, error) {
	// Wanted first: what is wanted no more by then is mounted no more, either.
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
