package nodemanager

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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
	event podEvent
	// wait is what it has been waiting for.
	wait longWait
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
	Resolved *ResolvedVolume
	// Unresolved says why not, as of the last look.
	Unresolved error
	// Waits counts how often in a row its claim, or its attachment, was looked at in
	// vain.
	Waits int
	// Shown is what is known of what it shows.
	Shown Shown
}

// ResolvedVolume is a volume of which all is known that is needed to mount it.
type ResolvedVolume struct {
	volumes.Spec
	Plugin volumes.Plugin
	// Refused says why it isn't mounted for a pod that never had it; nil if it is.
	Refused error
}

// Location is where the volume lies in the pod's directory.
func (v *ResolvedVolume) Location() Location {
	return Location{Plugin: v.Plugin.Name(), Name: v.Name(), Block: v.IsBlock()}
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

// NeedsVolumes says whether a pod's volumes must be there: until it is finished
// or being deleted, and in any case while one of its containers runs.
// A pod without container statuses has nothing that runs.
func NeedsVolumes(pod *corev1.Pod) bool {
	if hasRunningContainer(pod) {
		return true
	}
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return !finished && pod.DeletionTimestamp == nil
}

func hasRunningContainer(pod *corev1.Pod) bool {
	lists := [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses,
		pod.Status.EphemeralContainerStatuses,
	}
	for _, statuses := range lists {
		for _, status := range statuses {
			if status.State.Running != nil {
				return true
			}
		}
	}
	return false
}
