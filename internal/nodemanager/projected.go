package nodemanager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/republication"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// concurrentReads is how many volumes of one pod are read at once.
	concurrentReads = 16
	// staleInterval is how often an out-of-date volume of a running pod is tried again. Most
	// causes end with an event of a watch.
	staleInterval = time.Minute
)

// projections reads the content of projected volumes, and refreshes mounted ones.
type projections struct {
	objects    Objects
	operations *operations.Operations
	reports    *reporter
	clock      clock.PassiveClock
}

// read reads what the volumes of a pod should contain by now. A read that hangs doesn't delay
// the other volumes.
func (p *projections) read(ctx context.Context, at *pass) {
	slots := make(chan struct{}, concurrentReads)
	var reads sync.WaitGroup
	for _, volume := range at.desired.Volumes {
		if volume.Unresolved != nil || !content.IsProjected(volume.Volume) {
			continue
		}
		slots <- struct{}{}
		reads.Go(func() {
			p.readVolume(ctx, at.pod, volume)
			<-slots
		})
	}
	reads.Wait()
}

func (p *projections) readVolume(ctx context.Context, pod *corev1.Pod, volume *DesiredVolume) {
	files, renew, err := content.Of(ctx, p.objects, pod, volume.Volume)
	volume.Projected.err, volume.Projected.renew = pendingIfUnreadable(err), renew
	if err != nil {
		return
	}
	// A copy: a running operation uses the earlier content.
	resolved := *volume.Resolved
	resolved.Pod, resolved.Files = pod, files
	volume.Resolved = &resolved
}

// refresh brings the content of a mounted volume up to date.
func (p *projections) refresh(ctx context.Context, at *pass, volume *DesiredVolume, dir string) podstatus.Progress {
	resolved, projected := volume.Resolved, &volume.Projected
	refresher, is := resolved.Plugin.(volumes.Refresher)
	if !is {
		return p.republish(ctx, at, volume, dir)
	}
	if projected.err != nil {
		return p.outdated(at.pod, volume, projected.err, staleInterval)
	}
	if projected.written.Has(resolved.Files) {
		projected.reported = false
		return podstatus.Progress{Done: true, Again: p.untilRenewal(projected)}
	}
	task := operations.Task{Kind: operations.Refreshing, Type: refresher.Name(), Dir: dir, Pod: at.pod.UID}
	outcome := p.operations.Do(ctx, task, func(ctx context.Context) error {
		return projected.written.Write(resolved.Files, func() error { return refresher.Refresh(ctx, resolved.Spec, dir) })
	})
	if outcome.Err != nil {
		return p.outdated(at.pod, volume, outcome.Err, outcome.RetryAfter)
	}
	return podstatus.Progress{Done: true, Again: slowOperation}
}

// republish publishes a mounted volume again, if its driver requires that.
func (p *projections) republish(ctx context.Context, at *pass, volume *DesiredVolume, dir string) podstatus.Progress {
	resolved := volume.Resolved
	republisher, is := resolved.Plugin.(volumes.Republisher)
	if !is || !republisher.Republishes(ctx, resolved.Spec) {
		return podstatus.Progress{Done: true}
	}
	left, err := volume.republication.Due(p.clock.Now())
	if left <= 0 {
		task := operations.Task{Kind: operations.Refreshing, Type: volumes.QueueOf(republisher, resolved.Spec, dir), Dir: dir, Pod: at.pod.UID}
		p.operations.Do(ctx, task, func(ctx context.Context) error {
			return volume.republication.End(republisher.Republish(ctx, resolved.Spec, dir))
		})
		left = republication.Interval
	}
	if err != nil {
		return p.outdated(at.pod, volume, err, left)
	}
	volume.Projected.reported = false
	return podstatus.Progress{Done: true, Again: left}
}

// outdated is the progress of a volume that can't be refreshed. It keeps its content and
// counts as mounted: its pod runs with it. The event is recorded once.
func (p *projections) outdated(pod *corev1.Pod, volume *DesiredVolume, err error, again time.Duration) podstatus.Progress {
	if !volume.Projected.reported {
		volume.Projected.reported = true
		p.reports.record(pod, podstatus.PodEvent{
			Kind: corev1.EventTypeWarning, Reason: event.FailedMount, Action: "Refreshing",
			Note: fmt.Sprintf("volume %s keeps its earlier content: %v", volume.Volume.Name, err),
		})
	}
	return podstatus.Progress{Done: true, Again: again}
}

// untilRenewal is when a token of the volume is to be renewed; 0: it has none.
func (p *projections) untilRenewal(projected *Projected) time.Duration {
	if projected.renew.IsZero() {
		return 0
	}
	return max(projected.renew.Sub(p.clock.Now()), podstatus.FirstClaimWait)
}

// pendingIfUnreadable makes an error one to wait for, if it lasts only until the API server
// knows that the pod is on this node.
func pendingIfUnreadable(err error) error {
	if errors.Is(err, content.ErrMissing) && apierrors.IsForbidden(err) {
		return resolve.WaitFor("waiting: %v", err)
	}
	return err
}
