package nodemanager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
)

// These tests run in bubbles: a pass waits a moment for its operations, and there no time passes while
// they run.

// scripted is a volume type that remembers what is published, and does more in each step.
type scripted struct {
	mu        sync.Mutex
	published map[string]bool
	missing   error
	publish   func(dir string)
	unpublish func(dir string) error
}

func (*scripted) Name() string                { return "kubernetes.io/empty-dir" }
func (*scripted) CanHandle(volumes.Spec) bool { return true }
func (*scripted) Path(dir string) string      { return dir }

func (s *scripted) IsPublished(_ mount.Table, _ volumes.Spec, dir string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.published[filepath.Base(dir)] {
		return true, nil
	}
	return false, s.missing
}

func (s *scripted) Publish(_ context.Context, _ volumes.Spec, dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published[filepath.Base(dir)] = true
	if s.publish != nil {
		s.publish(dir)
	}
	return nil
}

func (s *scripted) Unpublish(_ context.Context, dir string) error { return s.unpublish(dir) }

// mustHaveItsVolumesAfterOnePass reconciles a pod once.
func mustHaveItsVolumesAfterOnePass(t *testing.T, pod *corev1.Pod, script *scripted) {
	t.Helper()
	api := clientWith(interceptor.Funcs{}, pod)
	bench := newBench(t, api, api, withTypes(script))
	if _, err := bench.Reconcile(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	bench.operations.Wait()
	now := &corev1.Pod{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), now); err != nil {
		t.Fatal(err)
	}
	for _, condition := range now.Status.Conditions {
		if condition.Type == stowagev1alpha1.VolumesReadyCondition && condition.Status == corev1.ConditionTrue {
			return
		}
	}
	t.Errorf("published: %v, and the pod has %+v", script.published, now.Status.Conditions)
}

func TestAMountThatIsLostDuringAPassIsMadeAgainInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := nodetest.PodOnNode(nodetest.SomePod)
		late := *pod.Spec.Volumes[0].DeepCopy()
		late.Name = "late"
		pod.Spec.Volumes = append(pod.Spec.Volumes, late)
		script := &scripted{published: map[string]bool{"scratch": true}}
		script.publish = func(dir string) {
			if filepath.Base(dir) == "late" {
				delete(script.published, "scratch")
			}
		}
		mustHaveItsVolumesAfterOnePass(t, pod, script)
		if !script.published["scratch"] {
			t.Error("the pod counts as ready, and one of its volumes isn't mounted")
		}
	})
}

func TestADiskThatIsBackIsMountedInThePassThatFindsItGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := &scripted{published: map[string]bool{}, missing: volumes.ErrGone}
		mustHaveItsVolumesAfterOnePass(t, nodetest.PodOnNode(nodetest.SomePod), script)
	})
}

func TestAPodWhoseContainerBeginsToRunDuringATeardownStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false)
		api := clientWith(interceptor.Funcs{}, pod)
		script := &scripted{unpublish: func(dir string) error {
			now := &corev1.Pod{}
			err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), now)
			return errors.Join(err, api.Status().Update(t.Context(), nodetest.Deleting(now, true)), os.RemoveAll(dir))
		}}
		asked := 0
		refusing := interceptor.Funcs{Delete: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			asked++
			return api.Delete(ctx, object, options...)
		}}
		cached := interceptor.NewClient(api.(client.WithWatch), refusing)
		bench := newBench(t, cached, api, withTypes(script))

		result, err := bench.Reconcile(t.Context(), nodetest.SomePod)

		if err != nil || result.RequeueAfter != podstatus.FirstClaimWait || asked != 1 {
			t.Errorf("got %+v, %v, and its deletion was finished %d times", result, err, asked)
		}
	})
}

func TestAPodIsReconciledForWhatEndsAfterTheLastLookOfATeardown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := map[string]string{"scratch": "two", "two": "three", "three": "four"}
		script := &scripted{unpublish: func(dir string) error {
			var err error
			if name := next[filepath.Base(dir)]; name != "" {
				err = os.Mkdir(filepath.Join(filepath.Dir(dir), name), 0o750)
			}
			return errors.Join(err, os.RemoveAll(dir))
		}}
		api := clientWith(interceptor.Funcs{})
		bench, woken := newBench(t, api, api, withTypes(script)), make(chan types.UID, 10)
		bench.operations.OnEnd(func(pod types.UID) { woken <- pod })

		if _, err := bench.Reconcile(t.Context(), nodetest.SomePod); err != nil {
			t.Fatal(err)
		}
		bench.operations.Wait()

		if len(woken) != 1 {
			t.Errorf("it is woken %d times", len(woken))
		}
	})
}

// heldLook is a volume type whose volumes are looked at until the test lets them be.
type heldLook struct {
	silent
	running *atomic.Int32
	let     chan struct{}
}

func (h heldLook) IsPublished(mount.Table, volumes.Spec, string) (bool, error) {
	h.running.Add(1)
	defer h.running.Add(-1)
	<-h.let
	return true, nil
}

func TestPodsGoWhileAsManyAsMayArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := heldLook{running: &atomic.Int32{}, let: make(chan struct{})}
		var pods []*corev1.Pod
		for i := range concurrentPublishes + 10 {
			pod := nodetest.PodOnNode(types.UID(fmt.Sprint("new-", i)))
			pod.Name = string(pod.UID)
			pods = append(pods, pod)
		}
		api := clientWith(interceptor.Funcs{}, pods...)
		bench := newBench(t, api, api, withTypes(held, emptydir.New(&mounttest.Fake{})))
		var running sync.WaitGroup
		for _, pod := range pods {
			running.Go(func() {
				if _, err := bench.Reconcile(t.Context(), pod.UID); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if now := held.running.Load(); now != concurrentPublishes {
			t.Errorf("%d pods are published at once", now)
		}
		if err := bench.settle(t); err != nil || bench.alive() {
			t.Errorf("a pod that is gone has its volume still (%v)", err)
		}
		close(held.let)
		running.Wait()
	})
}
