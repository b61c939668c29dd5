package nodemanager

import (
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/republication"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Desired is the volumes that pods ask for, in memory only: a restart reads them from the
// pods again. Its zero value is usable.
type Desired struct {
	mu   sync.Mutex
	pods map[types.UID]*DesiredPod
}

// DesiredPod is the volumes of one pod. Only the pass that reconciles the pod touches it.
type DesiredPod struct {
	Volumes []*DesiredVolume
	// written is the last condition that was written, and writtenOver the version of the pod
	// before that write.
	written     corev1.PodCondition
	writtenOver string
	// event is the last one about a condition. An equal one isn't recorded again while only
	// the pending volumes changed.
	event podstatus.PodEvent
	wait  podstatus.LongWait
}

// hasWritten reports whether the cached pod is older than a write of this condition.
func (p *DesiredPod) hasWritten(pod *corev1.Pod, condition corev1.PodCondition) bool {
	same := p.written.Status == condition.Status && p.written.Reason == condition.Reason && p.written.Message == condition.Message
	return same && p.writtenOver == pod.ResourceVersion
}

// DesiredVolume is one volume of a pod.
type DesiredVolume struct {
	// Volume is the pod's spec of it.
	Volume corev1.Volume
	// Resolved is its volume object and type; nil while its claim isn't bound.
	Resolved *resolve.ResolvedVolume
	// Unresolved is why Resolved is nil, as of this pass.
	Unresolved error
	// Waits counts how often in a row its claim, or its attachment, was read in vain.
	Waits int
	// Projected is the state of its projected content.
	Projected Projected
	// republication is when its driver was last called to renew it.
	republication republication.Republication
}

// Projected is the state of a volume that projects objects of the API server. The content
// itself is in the volume's Spec.
type Projected struct {
	// err is why the content couldn't be read. The content that was read before stays.
	err error
	// renew is when it is to be read again.
	renew time.Time
	// written is what operations last wrote.
	written content.Written
	// reported: an event says that the volume is out of date.
	reported bool
}

// Want returns a pod's volumes, with their state from earlier passes: a pod's list of volumes
// never changes.
func (d *Desired) Want(pod *corev1.Pod) *DesiredPod {
	d.mu.Lock()
	defer d.mu.Unlock()
	if desired, known := d.pods[pod.UID]; known {
		return desired
	}
	if d.pods == nil {
		d.pods = map[types.UID]*DesiredPod{}
	}
	desired := &DesiredPod{}
	for _, volume := range pod.Spec.Volumes {
		desired.Volumes = append(desired.Volumes, &DesiredVolume{Volume: volume})
	}
	d.pods[pod.UID] = desired
	return desired
}

// Forget drops a pod that needs no volumes any more.
func (d *Desired) Forget(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pods, uid)
}

// retryAfter is when to try again after an error: as usual, unless only another volume cures
// it. A claim may be bound to another volume later; a pod's own volume never changes. A
// permission that may be granted is read as often as a claim.
func (v *DesiredVolume) retryAfter(err error, usual time.Duration) time.Duration {
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

// failed is the progress of a volume that can't be mounted yet because its claim, its
// attachment or its content is missing.
func (v *DesiredVolume) failed(err error) podstatus.Progress {
	v.Waits++
	return podstatus.Progress{Err: err, Again: podstatus.ClaimWait(v.Waits)}
}

// pass is one pass over a pod that needs its volumes.
type pass struct {
	pod     *corev1.Pod
	desired *DesiredPod
	// operations and table are what runs and what is mounted, and comparisons how often losses were
	// looked for, as of the pass's last look.
	operations  operations.View
	table       mount.Table
	comparisons int
	// states is how far the volumes are, in their order.
	states []podstatus.Progress
}

// progressOf is the progress of a volume after its operation was requested.
func progressOf(outcome operations.Outcome) podstatus.Progress {
	switch {
	case outcome.Err != nil:
		return podstatus.Progress{Err: outcome.Err, Again: outcome.RetryAfter}
	case outcome.QueuedFor >= slowOperation:
		return podstatus.Progress{Err: resolve.WaitFor("queued: many volumes of its type are being mounted or unmounted"), Again: slowOperation}
	case outcome.RunningFor >= slowOperation:
		return podstatus.Progress{Err: resolve.WaitFor("mounting takes long: does the storage answer?"), Again: slowOperation}
	default:
		return podstatus.Progress{Again: slowOperation}
	}
}
