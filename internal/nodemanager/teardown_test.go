package nodemanager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
)

// bench is a reconciler with a cache and an API server that may disagree, and
// one pod directory with an emptyDir that holds a file.
type bench struct {
	*Reconciler
	canary string
}

func newBench(t *testing.T, cached, live client.Client, set ...func(*Options)) *bench {
	t.Helper()
	tree, err := poddir.NewTree(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := poddir.Location{Plugin: "kubernetes.io/empty-dir", Name: "scratch"}
	canary := filepath.Join(tree.VolumeDir(nodetest.SomePod, at), "canary")
	if err := os.MkdirAll(filepath.Dir(canary), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(canary, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mounter := &mounttest.Fake{}
	options := Options{
		NodeName: "n1", Tree: tree, Mounter: mounter, Volumes: volumes.Registry{emptydir.New(mounter)},
		Client: cached, Live: live, Events: events.NewFakeRecorder(100), Clock: clocktesting.NewFakeClock(time.Now()),
	}
	for _, set := range set {
		set(&options)
	}
	return &bench{Reconciler: NewReconciler(options), canary: canary}
}

func (b *bench) alive() bool {
	_, err := os.Stat(b.canary)
	return err == nil
}

// settle reconciles the pod until nothing runs for it any more.
func (b *bench) settle(t *testing.T) error {
	t.Helper()
	var err error
	for range 5 {
		_, err = b.Reconcile(t.Context(), nodetest.SomePod)
		b.operations.Wait()
	}
	return err
}

// withTypes replaces the volume types.
func withTypes(types ...volumes.Plugin) func(*Options) {
	return func(options *Options) { options.Volumes = types }
}

// clientWith is an API server, or a cache of one, that knows these pods. Each process that is killed makes one: it deduces types,
// because the schema of all types takes longer to parse than everything else that such a process does.
func clientWith(funcs interceptor.Funcs, pods ...*corev1.Pod) client.Client {
	builder := fake.NewClientBuilder().WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Pod{}, podclaims.UIDIndex, podclaims.UID).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Pod{}, "metadata.name", func(object client.Object) []string { return []string{object.GetName()} })
	for _, pod := range pods {
		builder = builder.WithObjects(pod)
	}
	return builder.Build()
}

func TestATeardownNeedsALiveReadOfThePod(t *testing.T) {
	none := interceptor.Funcs{}
	down := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("connection refused")
	}}
	tests := map[string]struct {
		cached, live client.Client
		alive        bool
	}{
		"gone from both":                               {clientWith(none), clientWith(none), false},
		"not in the cache, but alive":                  {clientWith(none), clientWith(none, nodetest.PodOnNode(nodetest.SomePod)), true},
		"not in the cache, and the API server is down": {clientWith(none), clientWith(down), true},
		"deleting in both":                             {clientWith(none, nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false)), clientWith(none, nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false)), false},
		"deleting, and its containers run by now":      {clientWith(none, nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false)), clientWith(none, nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), true)), true},
		"deleting, and the API server is down":         {clientWith(none, nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false)), clientWith(down), true},
		"created again under its name":                 {clientWith(none, nodetest.PodOnNode("pod-2")), clientWith(none, nodetest.PodOnNode("pod-2")), false},
		"alive in both":                                {clientWith(none, nodetest.PodOnNode(nodetest.SomePod)), clientWith(none, nodetest.PodOnNode(nodetest.SomePod)), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bench := newBench(t, test.cached, test.live)
			_ = bench.settle(t)
			if bench.alive() != test.alive {
				t.Errorf("alive is %v", bench.alive())
			}
		})
	}
}

func TestADeletionIsFinishedOnlyForThePodItWasMeantFor(t *testing.T) {
	old, pod := nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false), nodetest.PodOnNode("pod-2")
	old.Finalizers = nil
	var deleted []client.DeleteOption
	api := interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
		deleted = append(deleted, options...)
		return nil
	}}
	bench := newBench(t, clientWith(api, pod), clientWith(api, pod))
	if _, err := bench.remover.finishDeletion(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	var asked client.DeleteOptions
	asked.ApplyOptions(deleted)
	if *asked.GracePeriodSeconds != 0 || *asked.Preconditions.UID != nodetest.SomePod {
		t.Errorf("asked for %+v", asked)
	}
}

func TestAVolumeOfAnUnknownTypeKeepsThePodsDirectory(t *testing.T) {
	bench := newBench(t, clientWith(interceptor.Funcs{}), clientWith(interceptor.Funcs{}), withTypes())
	if _, problems := bench.remover.ensureGone(t.Context(), nodetest.SomePod); len(problems) == 0 {
		t.Error("it has no problem")
	}
	if !bench.alive() {
		t.Error("its data was removed")
	}
}

func TestAProblemOfATeardownIsRecordedOnceAndRetriedLessAndLessOften(t *testing.T) {
	tests := map[string]func(*testing.T, *bench){
		"a volume of an unknown type": func(_ *testing.T, bench *bench) { bench.remover.Volumes = nil },
		"a file in its directory": func(t *testing.T, bench *bench) {
			if err := os.WriteFile(filepath.Join(bench.Tree.PodDir(nodetest.SomePod), "left"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"an unmount that fails": func(t *testing.T, bench *bench) {
			dir := filepath.Dir(bench.canary)
			mounter := bench.Mounter.(*mounttest.Fake)
			if err := mounter.Tmpfs(dir, mount.TmpfsOptions{}); err != nil {
				t.Fatal(err)
			}
			mounter.Refuse(dir, errors.New("busy"))
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			pod := nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false)
			bench := newBench(t, clientWith(interceptor.Funcs{}, pod), clientWith(interceptor.Funcs{}, pod))
			spoil(t, bench)
			var again time.Duration
			for range 20 {
				result, err := bench.Reconcile(t.Context(), nodetest.SomePod)
				if err != nil {
					t.Fatal(err)
				}
				bench.operations.Wait()
				again = max(again, result.RequeueAfter)
				bench.Clock.(*clocktesting.FakeClock).Step(result.RequeueAfter)
			}
			if recorded := len(bench.Events.(*events.FakeRecorder).Events); recorded != 1 || again < podstatus.LastClaimWait {
				t.Errorf("%d events were recorded, and the longest wait is %s", recorded, again)
			}
		})
	}
}

func TestNothingIsKeptOfAPodThatIsGone(t *testing.T) {
	bench := newBench(t, clientWith(interceptor.Funcs{}), clientWith(interceptor.Funcs{}))
	left := filepath.Join(bench.Tree.PodDir(nodetest.SomePod), "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}
	if len(bench.remover.problems.Tries) != 1 {
		t.Fatal("its problem was forgotten")
	}
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}
	if len(bench.remover.problems.Tries) != 0 || bench.operations.Known() != 0 {
		t.Errorf("left: %v, %v", bench.remover.problems.Tries, bench.operations.Known())
	}
}

func TestNoEventIsRecordedTwiceWhileTheCacheIsBehind(t *testing.T) {
	patches := 0
	behind := interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		patches++
		return nil
	}}
	pod := nodetest.PodOnNode(nodetest.SomePod)
	pod.Spec.Volumes = []corev1.Volume{{Name: "unserved", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	bench := newBench(t, clientWith(behind, pod), clientWith(behind, pod), withTypes())
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}
	if recorded := len(bench.Events.(*events.FakeRecorder).Events); patches != 1 || recorded != 1 {
		t.Errorf("%d conditions were written and %d events recorded", patches, recorded)
	}
}

func TestADeletionIsNotFinishedWhileAMountThatWasBegunStillRuns(t *testing.T) {
	deleted := 0
	api := interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
		deleted++
		return nil
	}}
	pod := nodetest.Deleting(nodetest.PodOnNode(nodetest.SomePod), false)
	bench := newBench(t, clientWith(api, pod), clientWith(api, pod))
	if err := os.RemoveAll(bench.Tree.PodDir(nodetest.SomePod)); err != nil {
		t.Fatal(err)
	}
	hangs := make(nodetest.Gate)
	bench.operations.Do(t.Context(), operations.Task{Kind: operations.Mounting, Dir: "a volume's directory", Pod: nodetest.SomePod}, hangs.Work)

	if _, err := bench.Reconcile(t.Context(), nodetest.SomePod); err != nil || deleted != 0 {
		t.Errorf("it was finished %d times (%v)", deleted, err)
	}
	hangs <- nil
	bench.operations.Wait()
	if _, err := bench.Reconcile(t.Context(), nodetest.SomePod); err != nil || deleted != 1 {
		t.Errorf("it was finished %d times (%v)", deleted, err)
	}
}
