package growth

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/wake"
)

// hanging is a volume type of several drivers, of which some don't answer before the gate is open.
type hanging struct {
	elastic
	open   chan struct{}
	mu     sync.Mutex
	called map[string]int
}

func (h *hanging) Grow(ctx context.Context, volume *corev1.PersistentVolume) (int64, error) {
	driver := volume.Spec.CSI.Driver
	h.mu.Lock()
	h.called[driver]++
	h.mu.Unlock()
	if strings.HasPrefix(driver, "hangs") {
		select {
		case <-h.open:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return 2 << 30, nil
}

func (h *hanging) calls(driver string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.called[driver]
}

// crowd is a running controller and the claims of several drivers, each with a pod.
type crowd struct {
	*growthBench
	hanging *hanging
	queue   wake.Queue
}

func newCrowd(t *testing.T, drivers map[string]int) *crowd {
	t.Helper()
	b := newGrowthBench(t, pendingHere, interceptor.Funcs{})
	var objects []client.Object
	for driver, number := range drivers {
		for i := range number {
			claim, volume, pod := b.claim.DeepCopy(), b.volume.DeepCopy(), nodetest.PodWith(nodetest.ClaimVolume("data", false))
			name := driver + "-" + strconv.Itoa(i)
			claim.Name, claim.UID, claim.Spec.VolumeName, claim.ResourceVersion = name, types.UID(name), name, ""
			volume.Name, volume.Spec.ClaimRef.Name, volume.Spec.ClaimRef.UID, volume.ResourceVersion = name, name, claim.UID, ""
			volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
			pod.Name, pod.UID, pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = name, types.UID(name), name
			objects = append(objects, claim, volume, pod)
		}
	}
	c := &crowd{growthBench: b, hanging: &hanging{elastic: elastic{mounted: true}, open: make(chan struct{}), called: map[string]int{}}}
	b.api = fake.NewClientBuilder().WithObjects(objects...).WithIndex(&corev1.Pod{}, podclaims.ClaimIndex, podclaims.ClaimNames).WithStatusSubresource(b.claim).Build()
	b.Client, b.Live, b.Volumes = b.api, b.api, volumes.Registry{c.hanging}
	b.Events = events.NewFakeRecorder(1000)
	c.start(t)
	return c
}

// start starts workers as SetupWithManager does.
func (c *crowd) start(t *testing.T) {
	t.Helper()
	options := c.options()
	options.Reconciler, options.SkipNameValidation = c.Growth, new(true)
	workers, err := controller.NewUnmanaged("growth", options)
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	requests := source.Func(func(_ context.Context, queue wake.Queue) error {
		c.queue = queue
		close(started)
		return nil
	})
	for _, at := range []source.Source{&c.turns.waking, requests} {
		if err := workers.Watch(at); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- workers.Start(ctx) }()
	<-started
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (c *crowd) mustBecome(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: never", what)
	}
}

// hasGrown reports whether all claims of a driver have grown.
func (c *crowd) hasGrown(t *testing.T, driver string) func() bool {
	return func() bool {
		claims := &corev1.PersistentVolumeClaimList{}
		if err := c.api.List(t.Context(), claims); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool {
			return strings.HasPrefix(claim.Name, driver+"-") && claim.Status.Capacity.Storage().String() != "2Gi"
		})
	}
}

func (c *crowd) add(driver string, number int) {
	for i := range number {
		c.queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: c.claim.Namespace, Name: driver + "-" + strconv.Itoa(i)}})
	}
}

func TestADriverThatHangsHoldsUpTheGrowthOfItsOwnVolumesOnly(t *testing.T) {
	const hangs, hangsToo, answers, many = "hangs.example.com", "hangs-too.example.com", "answers.example.com", 3 * growthsOfDriver
	c := newCrowd(t, map[string]int{hangs: many, hangsToo: many, answers: many})
	c.add(hangs, many)
	c.add(hangsToo, many)
	c.mustBecome(t, "both drivers have as many calls as they may", func() bool {
		return c.hanging.calls(hangs) == growthsOfDriver && c.hanging.calls(hangsToo) == growthsOfDriver
	})

	c.add(answers, many)

	c.mustBecome(t, "the volumes of the driver that answers grow", c.hasGrown(t, answers))
	if got := c.hanging.calls(hangs); got != growthsOfDriver {
		t.Errorf("the driver that hangs has %d calls", got)
	}
	close(c.hanging.open)
	c.mustBecome(t, "the other volumes grow once their drivers answer", func() bool { return c.hasGrown(t, hangs)() && c.hasGrown(t, hangsToo)() })
	if recorded := c.recorded(); strings.Contains(recorded, "VolumeResizeFailed") {
		t.Errorf("a volume that waited has a failure: %s", recorded)
	}
}

func TestAClaimThatDoesNotUseItsTurnKeepsNoOtherWaiting(t *testing.T) {
	var turns turns
	queue := &listing{}
	if err := turns.waking.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	named := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	for i := range growthsOfDriver {
		if !turns.begin("a", named(strconv.Itoa(i))) {
			t.Fatal("there is a turn")
		}
	}
	for _, name := range []string{"first", "second", "second"} {
		if turns.begin("a", named(name)) {
			t.Fatal("there is no turn left")
		}
	}
	if !turns.begin("b", named("other")) {
		t.Error("the turns are each driver's own")
	}
	for range growthsOfDriver {
		turns.end("a")
	}
	if got := queue.added; !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("reconciled again: %v", got)
	}
	turns.end("b")
	if len(turns.of) != 0 {
		t.Errorf("it remembers %v", turns.of)
	}
}

// listing records what was added.
type listing struct {
	wake.Queue
	added []string
}

func (q *listing) Add(request ctrl.Request) { q.added = append(q.added, request.Name) }
