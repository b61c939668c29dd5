package nodemanager

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
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
