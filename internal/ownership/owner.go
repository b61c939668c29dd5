package ownership

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/mount"
)

const (
	// firstReport is how long a change of a tree takes before its first event, and
	// nextReport the interval of further events.
	firstReport = 30 * time.Second
	nextReport  = time.Minute
)

// Owner applies the fsGroup of pods to volumes, and reports it to users. Its zero value writes
// to the log alone, on a node without SELinux.
type Owner struct {
	// Events records events; nil: there are none.
	Events events.EventRecorder
	// Clock measures the duration; nil: the real one.
	Clock clock.PassiveClock
	// SELinux: files have labels on this node.
	SELinux bool
}

// ApplyFSGroup gives the volume in an open directory to the fsGroup of a pod, if it has one.
// It comes before the pod sees the volume, and is repeated until it succeeds.
func (o Owner) ApplyFSGroup(ctx context.Context, pod *corev1.Pod, volume string, dir *os.File) error {
	group, wanted := GroupOf(pod, mount.ReadWrite)
	if !wanted {
		return nil
	}
	report := &progress{owner: o, pod: pod, volume: volume}
	report.next = o.now().Add(firstReport)
	refused, err := group.Apply(ctx, dir, func(files int64) { report.update(ctx, files) })
	if err != nil {
		return fmt.Errorf("giving the volume to the pod's fsGroup: %w", err)
	}
	if refused > 0 {
		logf.FromContext(ctx).Info("some files of a volume can't be given to the fsGroup of its pod",
			"volume", volume, "fsGroup", group.ID, "files", refused)
	}
	return nil
}

// ReportOtherGroup records an event if a volume, which another pod uses, doesn't have the
// fsGroup of a pod.
func (o Owner) ReportOtherGroup(ctx context.Context, pod *corev1.Pod, volume string, dir *os.File) error {
	group, wanted := GroupOf(pod, mount.ReadWrite)
	stat, err := statOf(dir)
	if err != nil || !wanted || int(stat.Gid) == group.ID {
		return err
	}
	o.record(ctx, pod, event.AlreadyMountedVolume, fmt.Sprintf("volume %s is used by another pod and belongs to group %d, so it isn't given to fsGroup %d: "+
		"have its pods ask for the same fsGroup", volume, stat.Gid, group.ID))
	return nil
}

func (o Owner) now() time.Time {
	if o.Clock == nil {
		return time.Now()
	}
	return o.Clock.Now()
}

func (o Owner) record(ctx context.Context, pod *corev1.Pod, reason, note string) {
	logf.FromContext(ctx).Info("fsGroup of a pod", "pod", pod.Namespace+"/"+pod.Name, "note", note)
	if o.Events != nil {
		o.Events.Eventf(pod, nil, corev1.EventTypeWarning, reason, "Mounting", "%s", note)
	}
}

// progress reports how far the change of one volume is.
type progress struct {
	owner  Owner
	pod    *corev1.Pod
	volume string
	next   time.Time
}

func (r *progress) update(ctx context.Context, files int64) {
	now := r.owner.now()
	if now.Before(r.next) {
		return
	}
	r.next = now.Add(nextReport)
	r.owner.record(ctx, r.pod, event.VolumePermissionChangeInProgress, fmt.Sprintf("giving volume %s to the pod's fsGroup takes long: %d files so far; "+
		"with fsGroupChangePolicy OnRootMismatch it isn't done again when the volume has the group already", r.volume, files))
}
