package nodemanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// concurrentReads is for how many volumes of one pod the API server is asked at once.
	concurrentReads = 16
	// staleInterval is how often a running pod's volume is looked at again that can't
	// show what it should. Most causes tell when they are gone.
	staleInterval = time.Minute
)

// Objects reads what volumes show that are made of objects of the API server, and
// follows it.
type Objects interface {
	content.Reader
	// OnChange sets who is told of pods for which something changed. It returns at once.
	OnChange(tell func(types.UID))
	// Forget notes that a pod shows nothing any more.
	Forget(pod types.UID)
	// Run follows objects until the context ends.
	Run(ctx context.Context) error
}

// Shown is what is known of a volume that shows objects of the API server, beside what
// it should show, which is in its Spec.
type Shown struct {
	// err is why it isn't known what it should show; what was known before stays.
	err error
	// renew is when that is to be looked at again.
	renew time.Time
	// last is what this process last made it show; nil: nobody knows. Operations set it.
	last atomic.Pointer[content.Files]
	// told: the user knows that it doesn't show what it should.
	told bool
}

// by runs what makes the volume show these files. Cut off, it leaves nobody knowing.
func (s *Shown) by(files content.Files, work func() error) error {
	s.last.Store(nil)
	if err := work(); err != nil {
		return err
	}
	s.last.Store(&files)
	return nil
}

// shows says whether the volume is known to show these files.
func (s *Shown) shows(files content.Files) bool {
	last := s.last.Load()
	return last != nil && maps.EqualFunc(*last, files, isSameFile)
}

func isSameFile(a, b content.File) bool {
	return a.Mode == b.Mode && ptr.Equal(a.Owner, b.Owner) && bytes.Equal(a.Data, b.Data)
}

// lookAtContents finds out what the volumes of a pod should show by now. One that waits
// for the API server doesn't make the others wait.
func (r *Reconciler) lookAtContents(ctx context.Context, pod *corev1.Pod, wanted *DesiredPod) {
	slots := make(chan struct{}, concurrentReads)
	var reads sync.WaitGroup
	for _, volume := range wanted.Volumes {
		if volume.Unresolved != nil || !content.Shows(volume.Volume) {
			continue
		}
		slots <- struct{}{}
		reads.Go(func() {
			r.lookAtContent(ctx, pod, volume)
			<-slots
		})
	}
	reads.Wait()
}

func (r *Reconciler) lookAtContent(ctx context.Context, pod *corev1.Pod, volume *DesiredVolume) {
	files, renew, err := content.Of(ctx, r.Objects, pod, volume.Volume)
	if isUnreadable(err) {
		err = resolve.WaitFor("waiting: %v", err)
	}
	volume.Shown.err, volume.Shown.renew = err, renew
	if err != nil {
		return
	}
	// An operation that runs has what was known before.
	resolved := *volume.Resolved
	resolved.Pod, resolved.Files = pod, files
	volume.Resolved = &resolved
}

// follow makes a mounted volume show what it should by now.
func (r *Reconciler) follow(ctx context.Context, pod *corev1.Pod, volume *DesiredVolume, dir string) podstatus.Progress {
	resolved, shown := volume.Resolved, &volume.Shown
	refresher, follows := resolved.Plugin.(volumes.Refresher)
	if !follows {
		return podstatus.Progress{Done: true}
	}
	if shown.err != nil {
		return r.stays(pod, volume, shown.err, staleInterval)
	}
	if shown.shows(resolved.Files) {
		shown.told = false
		return podstatus.Progress{Done: true, Again: r.untilRenewal(shown)}
	}
	task := operations.Task{Kind: operations.Refreshing, Type: refresher.Name(), Dir: dir, Pod: pod.UID}
	outcome := r.operations.Do(ctx, task, func(ctx context.Context) error {
		return shown.by(resolved.Files, func() error { return refresher.Refresh(ctx, resolved.Spec, dir) })
	})
	if outcome.Err != nil {
		return r.stays(pod, volume, outcome.Err, outcome.RetryAfter)
	}
	return podstatus.Progress{Done: true, Again: slowOperation}
}

// stays is how far a volume is that can't show what it should. What it shows stays, and
// it counts as mounted: its pod runs with it. The user is told once.
func (r *Reconciler) stays(pod *corev1.Pod, volume *DesiredVolume, err error, again time.Duration) podstatus.Progress {
	if !volume.Shown.told {
		volume.Shown.told = true
		r.tell(pod, refreshFailed(volume.Volume.Name, err))
	}
	return podstatus.Progress{Done: true, Again: again}
}

// refreshFailed tells that a running pod's volume can't show what it should.
func refreshFailed(volume string, err error) podstatus.PodEvent {
	return podstatus.PodEvent{Kind: corev1.EventTypeWarning, Reason: podstatus.FailedMount, Action: "Refreshing", Note: fmt.Sprintf("volume %s shows what it did before: %v", volume, err)}
}

// untilRenewal is when a token that a volume shows is to be renewed; 0: it has none.
func (r *Reconciler) untilRenewal(shown *Shown) time.Duration {
	if shown.renew.IsZero() {
		return 0
	}
	return max(shown.renew.Sub(r.Clock.Now()), podstatus.FirstClaimWait)
}

// forgetObjects drops what was read for a pod.
func (r *Reconciler) forgetObjects(uid types.UID) {
	if r.Objects != nil {
		r.Objects.Forget(uid)
	}
}

// watchObjects wakes the pods whose volumes show what changed.
func (r *Reconciler) watchObjects(_ context.Context, q queue) error {
	r.Objects.OnChange(q.Add)
	return nil
}

// isUnreadable says that a volume waits only until the API server knows that its pod is
// on this node.
func isUnreadable(err error) bool {
	return errors.Is(err, content.ErrMissing) && apierrors.IsForbidden(err)
}
