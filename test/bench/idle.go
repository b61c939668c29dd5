package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stowage-dev/stowage/internal/wrap"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	idlePairs = 20000
	// eagerCollection makes the Go runtime collect garbage all the time, so that
	// what the last collection left is what is alive now.
	eagerCollection   = "GOGC=1"
	collections       = 4
	collectionTimeout = time.Minute
	collectionPoll    = 100 * time.Millisecond

	// idleReads is how many reads in a row have to show that nothing waits, and that no worker works.
	idleReads   = 3
	idleTimeout = 3 * time.Minute

	depthMetric       = "workqueue_depth"
	workersMetric     = "controller_runtime_active_workers"
	liveHeapMetric    = "go_gc_heap_live_bytes"
	collectionsMetric = "go_gc_cycles_total_gc_cycles_total"
)

// idleResult is what the manager remembers of volumes and claims that are bound
// and that nothing happens to.
type idleResult struct {
	Pairs                 int
	EmptyBytes, FullBytes int64
	BytesPerPair          float64
}

// measureIdle compares the manager's live heap, as the last garbage collection
// left it, without objects and with bound pairs. Where other programs serve metrics isn't
// known.
func (b *testbed) measureIdle() error {
	if b.options.vs != "" {
		fmt.Fprintln(b.report.out, "\nLive heap per idle pair: measured of the manager only")
		return nil
	}
	empty, err := b.liveHeap(0)
	if err != nil {
		return err
	}
	full, err := b.liveHeap(idlePairs)
	if err != nil {
		return err
	}
	got := &idleResult{Pairs: idlePairs, EmptyBytes: empty, FullBytes: full, BytesPerPair: float64(full-empty) / idlePairs}
	b.report.Idle = got
	fmt.Fprintf(b.report.out, "\nLive heap: %.1f MiB without pairs, %.1f MiB with %d idle ones: %.1f KiB a pair\n",
		float64(empty)/(1<<20), float64(full)/(1<<20), idlePairs, got.BytesPerPair/(1<<10))
	return nil
}

func (b *testbed) liveHeap(pairs int) (live int64, err error) {
	defer func() { err = errors.Join(err, b.clear()) }()
	if err := inParallel(b.ctx, pairs, func(i int) error { return b.createBound(i, boundVolume) }); err != nil {
		return 0, err
	}
	address, err := cluster.FreeAddress()
	if err != nil {
		return 0, err
	}
	manager := b.subject("--metrics-bind-address=" + address)
	manager.environment = []string{eagerCollection}
	running, err := b.startWorking(manager)
	if err != nil {
		return 0, err
	}
	defer running.stop()
	if _, err := b.awaitQuiet(); err != nil {
		return 0, err
	}
	if err := awaitIdle(b.ctx, address); err != nil {
		return 0, err
	}
	return awaitCollections(b.ctx, address)
}

// awaitIdle waits until a manager reconciled all objects. One that only reads writes nothing, and has what it works with in memory.
func awaitIdle(ctx context.Context, address string) error {
	idle := 0
	err := wait.PollUntilContextTimeout(ctx, collectionPoll, idleTimeout, true, func(ctx context.Context) (bool, error) {
		values, err := readMetrics(ctx, address, depthMetric, workersMetric)
		idle++
		if values[depthMetric]+values[workersMetric] > 0 {
			idle = 0
		}
		return idle == idleReads, err
	})
	return wrap.Error(err, "waiting until the manager has nothing to do")
}

func boundVolume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	pv := fixture.Volume(volumeOf(claim.Name), fixture.OfClass(class))
	pv.Annotations = map[string]string{annBound: "yes"}
	pv.Spec.ClaimRef = referenceTo(claim)
	return pv
}

// awaitCollections reads metrics, which makes garbage, until the garbage was
// collected a few times, and returns what was alive at the last time.
func awaitCollections(ctx context.Context, address string) (live int64, err error) {
	first := -1.0
	err = wait.PollUntilContextTimeout(ctx, collectionPoll, collectionTimeout, true, func(ctx context.Context) (bool, error) {
		values, err := readMetrics(ctx, address, liveHeapMetric, collectionsMetric)
		if err != nil {
			return false, err
		}
		if first < 0 {
			first = values[collectionsMetric]
		}
		live = int64(values[liveHeapMetric])
		return values[collectionsMetric] >= first+collections, nil
	})
	return live, err
}
