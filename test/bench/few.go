package main

import (
	"errors"
	"fmt"
	"time"
)

const (
	crowdSize    = 5000
	crowdMatches = 10
	crowdSamples = 10
	// beyond is a number that no object of the few has.
	beyond = 50000
)

var (
	few   = workload{name: "few", order: volumesFirst}
	lone  = workload{name: "lone", order: claimsFirst}
	crowd = workload{name: "crowd", huge: true}
)

// crowdResult is how long ten claims that volumes fit take to be bound, alone and
// beside claims of their class that no volume fits.
type crowdResult struct {
	Alone, Crowded latency
	Slowdown       float64
}

// measureLateVolume measures from the creation of a volume to the moment when the
// claim that waited for it is bound.
func (b *testbed) measureLateVolume() error {
	got, err := b.bindFew(lone, span{n: 1}, b.options.lates, 0)
	if err != nil {
		return err
	}
	b.report.LateVolume, b.report.LateSamples = &got, b.options.lates
	fmt.Fprintf(b.report.out, "\nA claim waits; its volume appears; bound after: %s\n", got)
	return nil
}

func (b *testbed) measureCrowd() error {
	alone, err := b.bindFew(few, span{n: crowdMatches}, crowdSamples, 0)
	if err != nil {
		return err
	}
	crowded, err := b.bindFew(few, span{n: crowdMatches}, crowdSamples, crowdSize)
	if err != nil {
		return err
	}
	b.report.Crowd = &crowdResult{Alone: alone, Crowded: crowded, Slowdown: float64(crowded.P99 / alone.P99)}
	fmt.Fprintf(b.report.out, "\n%d claims alone, bound after: %s\n  beside %d that no volume fits:  %s\n", crowdMatches, alone, crowdSize, crowded)
	return nil
}

// bindFew has the program bind a few claims several times, beside a number of
// claims that wait for what there isn't.
func (b *testbed) bindFew(w workload, s span, samples, beside int) (got latency, err error) {
	defer func() { err = errors.Join(err, b.clear()) }()
	running, err := b.startWorking(b.subject())
	if err != nil {
		return latency{}, err
	}
	defer running.stop()
	if _, err := b.create(span{from: beyond, n: beside}, crowd.claim); err != nil {
		return latency{}, err
	}
	if _, err := b.awaitQuiet(); err != nil {
		return latency{}, err
	}
	return b.samples(w, s, samples, running)
}

// samples has a running program bind a few claims several times.
func (b *testbed) samples(w workload, s span, samples int, running processes) (latency, error) {
	var times []time.Duration
	for range samples {
		taken, err := b.sample(w, s, running)
		if err != nil {
			return latency{}, err
		}
		times = append(times, taken...)
		s.from += s.n
	}
	return latencyOf(times), nil
}

// sample creates what comes first, waits until all is quiet, creates the rest,
// and measures from there.
func (b *testbed) sample(w workload, s span, running processes) (times []time.Duration, err error) {
	first, last := w.objects()
	if _, err := b.create(s, first); err != nil {
		return nil, err
	}
	if _, err := b.awaitQuiet(); err != nil {
		return nil, err
	}
	seen := newBound()
	watching, err := b.observe(seen.views()...)
	if err != nil {
		return nil, err
	}
	defer watching.stop()
	created, err := b.create(s, last)
	if err != nil {
		return nil, err
	}
	if err = watching.await(b.ctx, running, seen.all(s.n)); err != nil {
		err = fmt.Errorf("waiting for %d claims to be bound: %w", s.n, err)
	}
	watching.read(func() { times = seen.times(seen.tied, created) })
	return times, err
}
