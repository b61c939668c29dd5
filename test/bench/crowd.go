package main

import (
	"errors"
	"fmt"
	"time"
)

const (
	crowdSize    = 5000
	crowdMatches = 10
	// crowdSamples is how often the few are bound, with and without the crowd.
	crowdSamples = 10
	lateSamples  = 50
	// beyond is a number that no object of the few has.
	beyond = 50000
)

// few are volumes of one size, Available, and then claims for them.
var few = workload{name: "few", order: volumesFirst}

// lone is a claim that waits, and then its volume.
var lone = workload{name: "lone", order: claimsFirst}

// crowd are claims that no volume is large enough for.
var crowd = workload{name: "crowd", huge: true}

// crowdResult is how long ten claims that volumes fit take to be bound, alone and
// beside claims of their class that no volume fits.
type crowdResult struct {
	Alone, Crowded latency
	// Slowdown is p99 in the crowd to p99 alone.
	Slowdown float64
}

// measureLateVolume measures from the creation of a volume to the moment when the
// claim that waited for it is bound.
func (b *testbed) measureLateVolume(report *report) error {
	result, err := b.bindFew(lone, span{n: 1}, lateSamples, 0)
	if err != nil {
		return err
	}
	report.LateVolume = &result
	fmt.Printf("\nA claim waits; its volume appears; bound after: %s\n", result)
	return nil
}

func (b *testbed) measureCrowd(report *report) error {
	alone, err := b.bindFew(few, span{n: crowdMatches}, crowdSamples, 0)
	if err != nil {
		return err
	}
	crowded, err := b.bindFew(few, span{n: crowdMatches}, crowdSamples, crowdSize)
	if err != nil {
		return err
	}
	report.Crowd = &crowdResult{Alone: alone, Crowded: crowded, Slowdown: float64(crowded.P99 / alone.P99)}
	fmt.Printf("\n%d claims alone, bound after: %s\n  beside %d that no volume fits:  %s\n", crowdMatches, alone, crowdSize, crowded)
	return nil
}

// bindFew has the program bind a few claims several times, beside a number of
// claims that wait for what there isn't.
func (b *testbed) bindFew(w workload, s span, samples, beside int) (result latency, err error) {
	defer func() { err = errors.Join(err, b.clear()) }()
	p, err := b.startWorking(b.subject)
	if err != nil {
		return latency{}, err
	}
	defer p.stop()
	if _, err := b.createClaims(crowd, span{from: beyond, n: beside}); err != nil {
		return latency{}, err
	}
	if _, err := b.awaitQuiet(); err != nil {
		return latency{}, err
	}
	var times []time.Duration
	for range samples {
		taken, err := b.sample(w, s, p)
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
func (b *testbed) sample(w workload, s span, p *process) ([]time.Duration, error) {
	earlier, later := b.createVolumes, b.createClaims
	if w.order == claimsFirst {
		earlier, later = later, earlier
	}
	if _, err := earlier(w, s); err != nil {
		return nil, err
	}
	if _, err := b.awaitQuiet(); err != nil {
		return nil, err
	}
	watching, err := b.observe()
	if err != nil {
		return nil, err
	}
	created, err := later(w, s)
	if err != nil {
		return nil, err
	}
	_, bound, err := watching.awaitBound(b.ctx, s.n, p)
	if err != nil {
		return nil, err
	}
	if len(bound) < s.n {
		return nil, fmt.Errorf("only %d of %d claims were bound", len(bound), s.n)
	}
	times := make([]time.Duration, 0, s.n)
	for claim, when := range bound {
		times = append(times, max(0, when.Sub(created[claim])))
	}
	return times, nil
}
