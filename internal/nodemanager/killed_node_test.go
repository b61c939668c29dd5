package nodemanager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/configmap"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/csitest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/downwardapi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/projected"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/secret"
	"github.com/stowage-dev/stowage/test/harness/killpoint"
)

// killedNode is a node with one pod, whose node manager is killed and started again. What
// it needs to know fits in an environment variable, for the process that is killed.
type killedNode struct {
	// Dir is where everything lies, and Volume the pod's.
	Dir, Volume string
	// Version is that of what the volume shows.
	Version int
	// Leaves: the pod is being deleted.
	Leaves bool
	// Socket is that of another project's driver, and program the driver itself.
	Socket  string
	program *foreignProgram
}

// asKilled has the test binary be the node manager that is killed.
const asKilled = "STOWAGE_TEST_KILLED_NODE"

const (
	// passes are more than enough for a pod to be where it should be, unless the kernel
	// still ends what a process that was killed had mounted of a disk: it does so after the
	// process, and the disk isn't let go before.
	passes = 30
	// kernelPause is between the passes after those, and mostPauses are more than enough.
	kernelPause, mostPauses = 20 * time.Millisecond, 500
	// mostEvents is more than all passes record.
	mostEvents = 10 * (passes + mostPauses)
)

func newKilledNode(t *testing.T, volume string) *killedNode {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &killedNode{Dir: dir, Volume: volume}
	n.serveForeign(t)
	t.Cleanup(func() {
		n.Leaves = true
		if err := errors.Join(n.settle(context.Background()), mount.UnmountBelow(mount.Kernel{}, dir)); err != nil {
			t.Error(err)
		}
	})
	n.prepare(t)
	n.attachDisk(t)
	return n
}

func (n *killedNode) path(names ...string) string {
	return filepath.Join(append([]string{n.Dir}, names...)...)
}

// root is the agent's own folder.
func (n *killedNode) root() string { return n.path("agent") }

// settle has a node manager that was just started bring the pod to where it should be.
func (n *killedNode) settle(ctx context.Context) error {
	reconciler, api, err := n.restart(ctx)
	if err != nil {
		return err
	}
	var ended atomic.Int32
	reconciler.operations.OnEnd(func(types.UID) { ended.Add(1) })
	clock := reconciler.Clock.(*clocktesting.FakeClock)
	for pass := range n.mostPasses() {
		if pass >= passes {
			<-time.After(kernelPause) // nothing reports when the kernel is done
		}
		before := ended.Load()
		result, err := reconciler.Reconcile(ctx, nodetest.SomePod)
		if err != nil {
			return err
		}
		reconciler.operations.Wait()
		clock.Step(result.RequeueAfter)
		if ended.Load() == before && n.isSettled(ctx, reconciler, api) {
			return nil
		}
	}
	return fmt.Errorf("it never settles: %s", lastEvent(reconciler))
}

func (n *killedNode) mostPasses() int {
	if n.isDisk() {
		return passes + mostPauses
	}
	return passes
}

func (n *killedNode) isSettled(ctx context.Context, reconciler *Reconciler, api client.Client) bool {
	if n.Leaves {
		has, err := reconciler.Tree.HasPod(nodetest.SomePod)
		return err == nil && !has
	}
	pod := &corev1.Pod{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, pod); err != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == stowagev1alpha1.VolumesReadyCondition {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// lastEvent is the last event that the node manager recorded.
func lastEvent(reconciler *Reconciler) string {
	last := "no event says why"
	for recorder := reconciler.Events.(*events.FakeRecorder); len(recorder.Events) > 0; {
		last = <-recorder.Events
	}
	return last
}

// restart is a node manager that knows nothing.
func (n *killedNode) restart(ctx context.Context) (*Reconciler, client.Client, error) {
	pod, objects := n.pod()
	if n.Leaves {
		nodetest.Deleting(pod, false)
	}
	api := clientWith(interceptor.Funcs{}, pod)
	for _, object := range objects {
		if err := api.Create(ctx, object); err != nil {
			return nil, nil, err
		}
	}
	tree, err := poddir.NewTree(n.root())
	if err != nil {
		return nil, nil, err
	}
	kernel := mount.Kernel{}
	disks, err := n.disks(kernel)
	if err != nil {
		return nil, nil, err
	}
	plain, shares, err := n.shares()
	if err != nil {
		return nil, nil, err
	}
	caller, err := csitest.NewCallerOf(n.withForeign(csi.CallerOptions{Root: n.root(), Drivers: []drivers.Driver{disks, shares}}), n.path("base"))
	if err != nil {
		return nil, nil, err
	}
	return NewReconciler(Options{
		NodeName: "n1", Tree: tree, Mounter: kernel, Objects: &shelf{node: n}, Client: api, Live: api,
		Events: events.NewFakeRecorder(mostEvents), Clock: clocktesting.NewFakeClock(time.Now()), Disks: n.inUse(disks),
		Volumes: volumes.Registry{
			csi.New(caller), hostpath.New(kernel, n.root()), local.New(kernel), emptydir.New(kernel),
			configmap.New(kernel), secret.New(kernel), downwardapi.New(kernel), projected.New(kernel), plain,
		},
		Devices: volumes.Registry{csi.NewDevices(caller)},
	}), api, nil
}

// settleKilled does what settle does in a process of its own, which is killed right before
// one of its steps, and reports whether it came that far.
func (n *killedNode) settleKilled(t *testing.T, before int) bool {
	t.Helper()
	known, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestTheNodeManagerThatIsKilled$")
	command.Env, command.Stderr = append(os.Environ(), asKilled+"="+string(known)), os.Stderr
	open := n.program.open()
	_, killed, err := killpoint.Run(command, before)
	if err != nil {
		t.Fatal(err)
	}
	nodetest.Eventually(t, "the driver has noticed that its caller is gone", func() bool { return n.program.open() <= open })
	return killed
}

func TestTheNodeManagerThatIsKilled(t *testing.T) {
	known := os.Getenv(asKilled)
	if known == "" {
		t.Skip("it is what other tests run and kill")
	}
	n := &killedNode{}
	if err := json.Unmarshal([]byte(known), n); err != nil {
		t.Fatal(err)
	}
	if err := n.settle(t.Context()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		t.Fatal(err)
	}
}

// shelf is the objects that a killed node's volume shows.
type shelf struct {
	Objects
	node *killedNode
}

func (s *shelf) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return s.node.settings(), nil
}

func (s *shelf) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return s.node.password(), nil
}

func (s *shelf) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (content.Token, error) {
	return content.Token{Value: s.node.value(), Renew: time.Now().Add(time.Hour)}, nil
}

func (s *shelf) Forget(types.UID) {}
