package local_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	fakesource "k8s.io/client-go/tools/cache/testing"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/local"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAWatchSavesTheListOfVolumesForEachNewOne(t *testing.T) {
	cluster := countingLists{newCluster(t, Node("node-1"), Node("node-2")), map[string]int{}}
	cluster.disk(t, "disks", "node-1", "100Gi", "10Gi")
	cluster.disk(t, "disks", "node-2", "100Gi", "8Gi")
	kind := local.NewKind(cluster, cluster, base)
	watched := newWatched(t)
	if err := kind.Follow(t.Context(), watched); err != nil {
		t.Fatal(err)
	}
	disks, err := kind.Open(LocalBackend("disks"))
	if err != nil {
		t.Fatal(err)
	}

	_, _ = disks.Provision(t.Context(), asking("1", "6Gi"))
	if lists := cluster.lists["*v1alpha1.NodeVolumeList"]; lists != 1 {
		t.Errorf("before the watch has shown all, %d lists were needed", lists)
	}
	watched.start(t, kind)
	first := cluster.volume(t, "1")
	watched.source.Add(first)
	await(t, func() bool { return kind.Requests().At("disks", "node-1", "").All > 0 })
	_, _ = disks.Provision(t.Context(), asking("2", "6Gi"))

	if lists := cluster.lists["*v1alpha1.NodeVolumeList"]; lists != 1 {
		t.Errorf("%d lists were needed", lists)
	}
	if node := cluster.volume(t, "2").Spec.NodeName; node != "node-2" {
		t.Errorf("what the watch showed takes up no room: the second volume was requested on %s", node)
	}
	watched.source.Delete(first)
	await(t, func() bool { return kind.Requests().At("disks", "node-1", "").All == 0 })
	_, _ = disks.Provision(t.Context(), asking("3", "6Gi"))
	if node := cluster.volume(t, "3").Spec.NodeName; node != "node-1" {
		t.Errorf("what is gone takes up room: the third volume was requested on %s", node)
	}
}

// countingLists counts the lists by their types.
type countingLists struct {
	cluster
	lists map[string]int
}

func (c countingLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists[fmt.Sprintf("%T", list)]++
	return c.cluster.List(ctx, list, options...)
}

// watched is the informers of a cache, with one of NodeVolumes.
type watched struct {
	ctrlcache.Informers
	source   *fakesource.FakeControllerSource
	informer toolscache.SharedIndexInformer
}

func newWatched(t *testing.T) watched {
	t.Helper()
	source := fakesource.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	return watched{source: source, informer: toolscache.NewSharedIndexInformer(source, &stowagev1alpha1.NodeVolume{}, 0, nil)}
}

func (w watched) GetInformer(context.Context, client.Object, ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	return w.informer, nil
}

// start runs the watch, and waits until it has shown all.
func (w watched) start(t *testing.T, kind local.Kind) {
	t.Helper()
	go w.informer.RunWithContext(t.Context())
	await(t, kind.Requests().IsCurrent)
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatal("the watch shows nothing")
	}
}
