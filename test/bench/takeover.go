package main

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	takeoverNew   = 150
	takeoverEvery = 200 * time.Millisecond
)

// takeoverResult is how long claims take to be bound that are created after the leader was killed. Each has a
// volume, and other claims wait.
type takeoverResult struct {
	Waiting int
	After   latency
	// Requests are all that the API server answered from the kill until the last of these claims was bound.
	Requests requests
}

// measureTakeover kills the leader of two managers beside claims that no volume fits. For half a minute from
// then on, a volume and a claim for it are created every now and then.
func (b *testbed) measureTakeover() (err error) {
	if b.options.vs != "" {
		fmt.Fprintln(b.report.out, "\nTakeover: measured of the manager only")
		return nil
	}
	defer func() { err = errors.Join(err, b.clear()) }()
	leader, err := b.startWorking(b.subject(elects...))
	if err != nil {
		return err
	}
	defer leader.stop()
	if _, err := b.create(span{from: beyond, n: b.options.takeover}, crowd.claim); err != nil {
		return err
	}
	next, err := b.start(b.subject(elects...))
	if err != nil {
		return err
	}
	defer next.stop()
	if _, err := b.awaitQuiet(); err != nil {
		return err
	}
	if _, err := b.awaitCalm(next); err != nil {
		return err
	}
	before, err := b.countRequests()
	if err != nil {
		return err
	}
	got, err := b.takeOver(leader, next)
	if err != nil {
		return err
	}
	after, err := b.countRequests()
	if err != nil {
		return err
	}
	b.report.Takeover = &takeoverResult{Waiting: b.options.takeover, After: got, Requests: after.since(before)}
	fmt.Fprintf(b.report.out, "\nThe leader is killed beside %d waiting claims;\n  claims after that, bound after: %s\n", b.options.takeover, got)
	return nil
}

// takeOver kills the leader, and returns how long the claims that are created from then on take to be bound.
func (b *testbed) takeOver(leader, next processes) (latency, error) {
	seen := newBound()
	watching, err := b.observe(seen.views()...)
	if err != nil {
		return latency{}, err
	}
	defer watching.stop()
	if err := leader[0].Kill(); err != nil {
		return latency{}, fmt.Errorf("killing the leader: %w", err)
	}
	created, tick := map[string]time.Time{}, time.NewTicker(takeoverEvery)
	defer tick.Stop()
	for i := range takeoverNew {
		if err := b.createPair(i, created); err != nil {
			return latency{}, err
		}
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			return latency{}, b.ctx.Err()
		}
	}
	if err = watching.await(b.ctx, next, seen.all(takeoverNew)); err != nil {
		err = fmt.Errorf("waiting for %d claims to be bound: %w", takeoverNew, err)
	}
	var times []time.Duration
	watching.read(func() { times = seen.times(seen.tied, created) })
	return latencyOf(times), err
}

// createPair creates a volume and a claim for it, and notes when.
func (b *testbed) createPair(i int, created map[string]time.Time) error {
	for _, object := range []client.Object{few.volume(i), few.claim(i)} {
		if err := b.client.Create(b.ctx, object); err != nil {
			return fmt.Errorf("creating objects: %w", err)
		}
	}
	created[claimName(i)] = time.Now()
	return nil
}
