package nodemanager

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
)

// stuck is a volume type with mounts that return, cancelled or not, only when the test lets
// them proceed.
type stuck struct {
	silent
	running *atomic.Int32
	proceed chan struct{}
}

func (stuck) CanHandle(spec volumes.Spec) bool { return spec.Volume.NFS != nil }

func (s stuck) Publish(context.Context, volumes.Spec, string) error {
	s.running.Add(1)
	defer s.running.Add(-1)
	<-s.proceed
	return os.ErrDeadlineExceeded
}

// busyNode is a node manager with many pods.
type busyNode struct {
	*Reconciler
	mu    sync.Mutex
	pods  map[types.UID]*corev1.Pod
	clock *clocktesting.FakeClock
	stuck stuck
}

func newBusyNode(t *testing.T) *busyNode {
	t.Helper()
	tree, err := poddir.NewTree(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &busyNode{
		pods: map[types.UID]*corev1.Pod{}, clock: clocktesting.NewFakeClock(time.Now()),
		stuck: stuck{running: &atomic.Int32{}, proceed: make(chan struct{})},
	}
	api := clientWith(interceptor.Funcs{
		List: n.list,
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return nil
		},
	})
	mounter := &mounttest.Fake{}
	n.Reconciler = NewReconciler(Options{
		NodeName: "n1", Tree: tree, Mounter: mounter, Volumes: volumes.Registry{emptydir.New(mounter), n.stuck},
		Client: api, Live: api, Events: &events.FakeRecorder{}, Clock: n.clock,
	})
	return n
}

// list is all pods, or the one with a UID.
func (n *busyNode) list(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	n.mu.Lock()
	defer n.mu.Unlock()
	uid, one := asked.FieldSelector.RequiresExactMatch(podclaims.UIDIndex)
	for _, pod := range n.pods {
		if !one || pod.UID == types.UID(uid) {
			found := list.(*corev1.PodList)
			found.Items = append(found.Items, *pod)
		}
	}
	return nil
}

// add makes pods with one volume each.
func (n *busyNode) add(count int, name string, source corev1.VolumeSource) (uids []types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range count {
		pod := nodetest.PodOnNode(types.UID(fmt.Sprint(name, "-", i)))
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
		n.pods[pod.UID] = pod
		uids = append(uids, pod.UID)
	}
	return uids
}

func (n *busyNode) removeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.pods)
}

// reconcileAll reconciles each pod once, as many at a time as in an agent.
func (n *busyNode) reconcileAll(t *testing.T, uids []types.UID) {
	t.Helper()
	slots := make(chan struct{}, concurrentPods)
	var running sync.WaitGroup
	for _, uid := range uids {
		slots <- struct{}{}
		running.Go(func() {
			if _, err := n.Reconcile(t.Context(), uid); err != nil {
				t.Error(err)
			}
			<-slots
		})
	}
	running.Wait()
}

// mounted counts the pods whose volume is there.
func (n *busyNode) mounted(uids []types.UID) int {
	count := 0
	for _, uid := range uids {
		if _, err := os.Stat(n.Tree.VolumeDir(uid, poddir.Location{Plugin: "kubernetes.io/empty-dir", Name: "data"})); err == nil {
			count++
		}
	}
	return count
}

// burden is what this process costs its node.
type burden struct{ goroutines, files, bytes int }

func burdenNow(t *testing.T) burden {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return burden{runtime.NumGoroutine(), len(files), int(memory.HeapAlloc)}
}

func TestFiveHundredPodsAreServedBesideHangingVolumesWithoutALeak(t *testing.T) {
	mounttest.NeedsRoot(t) // a published directory is root's
	const pods, hanging, slack, slackBytes = 500, operations.MaxRunning + 50, 40, 64 << 20
	n := newBusyNode(t)
	before := burdenNow(t)
	stuckPods := n.add(hanging, "stuck", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "silent", Path: "/"}})
	for range operations.MaxRunning/operations.Slots + 2 {
		n.reconcileAll(t, stuckPods)
		n.clock.Step(operations.SlotTime)
	}
	nodetest.Eventually(t, "as many hang as may", func() bool { return n.stuck.running.Load() == operations.MaxRunning })

	well := n.add(pods, "well", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	nodetest.Eventually(t, "all others are served", func() bool { n.reconcileAll(t, well); return n.mounted(well) == pods })
	under := burdenNow(t)
	if under.goroutines > before.goroutines+operations.MaxRunning+slack || under.files > before.files+slack || under.bytes > before.bytes+slackBytes {
		t.Errorf("before there were %+v, and with volumes that hang there are %+v", before, under)
	}

	n.removeAll()
	nodetest.Eventually(t, "the others go while those hang", func() bool { n.reconcileAll(t, well); return n.mounted(well) == 0 })
	close(n.stuck.proceed)
	n.operations.Wait()
	nodetest.Eventually(t, "nothing is left", func() bool {
		n.reconcileAll(t, append(stuckPods, well...))
		left, err := n.Tree.Pods()
		return err == nil && len(left) == 0
	})
	n.operations.Wait()
	after := burdenNow(t)
	if after.goroutines > before.goroutines+slack || after.files > before.files+slack || after.bytes > before.bytes+slackBytes {
		t.Errorf("before there were %+v, and afterwards there are %+v", before, after)
	}
	if known := n.operations.Known() + len(n.desired.pods) + len(n.remover.problems.Tries); known != 0 {
		t.Errorf("%d pods and operations are remembered", known)
	}
}

var _ volumes.Plugin = stuck{}
