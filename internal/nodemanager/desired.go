package nodemanager

import (
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Desired is what pods ask for, kept in memory only: after a restart it is made
// again from the pods. Its zero value is usable.
type Desired struct {
	mu   sync.Mutex
	pods map[types.UID]*DesiredPod
}

// DesiredPod is the volumes of one pod. Only the pass that reconciles the pod
// touches it.
type DesiredPod struct {
	Volumes []*DesiredVolume
	// Told is the condition that was written last, and ToldAt the version of the
	// pod that it was written over.
	Told   corev1.PodCondition
	ToldAt string
	// event is the last one that told of a condition: one that says the same again, while
	// only what is waited for has changed, is none.
	event podstatus.PodEvent
	// wait is what it has been waiting for.
	wait podstatus.LongWait
}

// HasTold says whether a condition was written although the pod, as the cache
// has it, doesn't show it: the cache is behind.
func (p *DesiredPod) HasTold(pod *corev1.Pod, condition corev1.PodCondition) bool {
	same := p.Told.Status == condition.Status && p.Told.Reason == condition.Reason && p.Told.Message == condition.Message
	return same && p.ToldAt == pod.ResourceVersion
}

// DesiredVolume is one volume of a pod.
type DesiredVolume struct {
	// Volume is how the pod asks for it.
	Volume corev1.Volume
	// Resolved is what it turned out to be; nil while its claim isn't bound.
	Resolved *resolve.ResolvedVolume
	// Unresolved says why not, as of the last look.
	Unresolved error
	// Waits counts how often in a row its claim, or its attachment, was looked at in
	// vain.
	Waits int
	// Shown is what is known of what it shows.
	Shown Shown
}

// Want notes that a pod needs its volumes, and returns them, with what is known
// of them from earlier passes: a pod's list of volumes never changes.
func (d *Desired) Want(pod *corev1.Pod) *DesiredPod {
	d.mu.Lock()
	defer d.mu.Unlock()
	if wanted, known := d.pods[pod.UID]; known {
		return wanted
	}
	if d.pods == nil {
		d.pods = map[types.UID]*DesiredPod{}
	}
	wanted := &DesiredPod{}
	for _, volume := range pod.Spec.Volumes {
		wanted.Volumes = append(wanted.Volumes, &DesiredVolume{Volume: volume})
	}
	d.pods[pod.UID] = wanted
	return wanted
}

// Forget notes that a pod needs no volumes any more.
func (d *Desired) Forget(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pods, uid)
}

// againAfter is when to try again what failed: as usual, unless only another volume
// cures it. A claim may be bound to another one some day; what a pod names never changes.
// What may be allowed is looked at as often as a claim is.
func (v *DesiredVolume) againAfter(err error, usual time.Duration) time.Duration {
	var allowable resolve.MayBeAllowed
	switch {
	case !errors.Is(err, volumes.ErrNotSupported):
		return usual
	case errors.As(err, &allowable):
		return podstatus.LastClaimWait
	case v.Volume.PersistentVolumeClaim != nil || v.Volume.Ephemeral != nil:
		return operations.LastRetry
	default:
		return 0
	}
}
