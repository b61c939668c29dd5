package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	idlePairs = 5000
	// eagerCollection makes the Go runtime collect garbage all the time, so that
	// what the last collection left is what is alive now.
	eagerCollection = "GOGC=1"
	// collections are how many must have happened after the last write.
	collections       = 4
	collectionTimeout = time.Minute
	collectionPoll    = 100 * time.Millisecond

	liveHeapMetric    = "go_gc_heap_live_bytes"
	collectionsMetric = "go_gc_cycles_total_gc_cycles_total"
)

// idleResult is what the manager remembers of volumes and claims that are bound
// and that nobody touches.
type idleResult struct {
	Pairs                 int
	EmptyBytes, FullBytes int64
	BytesPerPair          float64
}

// measureIdle compares the manager's live heap, as the last garbage collection
// left it, without objects and with bound pairs. Of other programs it isn't known
// where they serve metrics.
func (b *testbed) measureIdle(report *report) (err error) {
	if b.subject.name != managerName {
		fmt.Println("\nLive heap per idle pair: measured of the manager only")
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
	result := &idleResult{Pairs: idlePairs, EmptyBytes: empty, FullBytes: full}
	result.BytesPerPair = float64(full-empty) / idlePairs
	report.Idle = result
	fmt.Printf("\nLive heap: %.1f MiB without pairs, %.1f MiB with %d idle ones: %.1f KiB a pair\n",
		float64(empty)/(1<<20), float64(full)/(1<<20), idlePairs, result.BytesPerPair/(1<<10))
	return nil
}

// liveHeap has pairs bound, and then starts the manager afresh beside them.
func (b *testbed) liveHeap(pairs int) (live int64, err error) {
	defer func() { err = errors.Join(err, b.clear()) }()
	if err := b.bindPairs(pairs); err != nil {
		return 0, err
	}
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	p, err := b.startWorking(b.subject.with("--metrics-bind-address="+address), eagerCollection)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	if _, err := b.awaitQuiet(); err != nil {
		return 0, err
	}
	return awaitCollections(b.ctx, "http://"+address+"/metrics")
}

func (b *testbed) bindPairs(n int) error {
	w := workloads[0]
	if _, err := b.createVolumes(w, span{n: n}); err != nil {
		return err
	}
	watching, err := b.observe()
	if err != nil {
		return err
	}
	if _, err := b.createClaims(w, span{n: n}); err != nil {
		return err
	}
	p, err := b.run(b.bare)
	if err != nil {
		return err
	}
	defer p.stop()
	_, bound, err := watching.awaitBound(b.ctx, n, p)
	if err == nil && len(bound) < n {
		err = fmt.Errorf("only %d of %d claims were bound", len(bound), n)
	}
	return err
}

// awaitCollections reads metrics, which makes garbage, until the garbage was
// collected a few times, and tells what was alive at the last time.
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

// readMetrics reads metrics without labels.
func readMetrics(ctx context.Context, address string, names ...string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the manager's metrics: %w", err)
	}
	defer response.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		for _, name := range names {
			if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
				if values[name], err = strconv.ParseFloat(text, 64); err != nil {
					return nil, fmt.Errorf("reading %s: %w", name, err)
				}
			}
		}
	}
	if len(values) < len(names) {
		return nil, fmt.Errorf("reading the manager's metrics: it has no %s", strings.Join(names, " or no "))
	}
	return values, nil
}

// freeAddress is one that nobody listens at.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
