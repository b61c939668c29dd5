package nodemanager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
)

func TestAFailedMountReadsItsClaimAgain(t *testing.T) {
	claim, broken := nodetest.Bound()
	broken.Spec.HostPath.Path, broken.Spec.HostPath.Type = filepath.Join(t.TempDir(), "missing"), new(corev1.HostPathDirectory)
	whole := broken.DeepCopy()
	whole.Name, whole.Spec.HostPath.Path = "pv2", t.TempDir()
	pod := nodetest.PodWith(nodetest.ClaimVolume("data", false))
	pod.Spec.NodeName = "n1"
	api := clientWith(interceptor.Funcs{}, pod)
	for _, object := range []client.Object{claim, broken, whole} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	mounter := &mounttest.Fake{}
	bench := newBench(t, api, api, withTypes(hostpath.New(mounter, t.TempDir())), func(options *Options) { options.Mounter = mounter })
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}

	claim.Spec.VolumeName = "pv2"
	if err := api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	bench.Clock.(*clocktesting.FakeClock).Step(time.Minute)
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}

	table, err := bench.Mounter.Table()
	if err != nil || len(table) != 1 || filepath.Base(table[0].Path) != "pv2" {
		t.Errorf("mounted: %+v (%v)", table, err)
	}
}

// lateTable is a Mounter whose table is old by the time that it arrives.
type lateTable struct {
	mounttest.Fake
	between func()
}

func (l *lateTable) Table() (mount.Table, error) {
	table, err := l.Fake.Table()
	l.between()
	return table, err
}

// slowMount is a volume type whose mounts end when the test says so.
type slowMount struct {
	volumes.Plugin
	gate nodetest.Gate
}

func (s slowMount) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	return errors.Join(s.gate.Work(ctx), s.Plugin.Publish(ctx, spec, dir))
}

func TestAVolumeThatIsMountedWhileTheMountTableIsReadIsMountedOnce(t *testing.T) {
	pod := nodetest.PodWith(corev1.Volume{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	pod.Spec.NodeName = "n1"
	api := clientWith(interceptor.Funcs{}, pod)
	mounter := &lateTable{between: func() {}}
	slow := slowMount{emptydir.New(&mounter.Fake), make(nodetest.Gate)}
	bench := newBench(t, api, api, withTypes(slow), func(options *Options) { options.Mounter = mounter })
	var lines []string
	ctx := logf.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	reconcile := func() {
		t.Helper()
		if _, err := bench.Reconcile(ctx, pod.UID); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()

	mounter.between = func() {
		mounter.between = func() {}
		slow.gate <- nil
		bench.operations.Wait()
	}
	reconcile()
	close(slow.gate)
	bench.operations.Wait()

	if len(lines) != 1 || !strings.Contains(lines[0], `"msg"="mounted"`) {
		t.Errorf("the log has %q", lines)
	}
}

func TestATreeIsWhereTheMountTableShowsIt(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	tree, err := poddir.NewTree(filepath.Join(link, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "agent", "pods", "pod-1", "volumes", "kubernetes.io~csi", "pv")
	if got := tree.VolumeDir(nodetest.SomePod, poddir.Location{Plugin: "kubernetes.io/csi", Name: "pv"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAPodWithoutVolumesIsReady(t *testing.T) {
	pod := nodetest.PodOnNode(nodetest.SomePod)
	pod.Spec.Volumes = nil
	api := clientWith(interceptor.Funcs{}, pod)
	bench := newBench(t, api, api)
	if err := bench.settle(t); err != nil {
		t.Fatal(err)
	}
	read := &corev1.Pod{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), read); err != nil {
		t.Fatal(err)
	}
	if conditions := read.Status.Conditions; len(conditions) != 1 || conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("its conditions are %+v", conditions)
	}
}
