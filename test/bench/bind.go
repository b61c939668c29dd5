package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	canary        = "canary"
	canaryTimeout = time.Minute
	// startTimeout is how long a program may take to start: beside many objects, it reads for a while.
	startTimeout = 5 * time.Minute
)

// measureBind sends programs through the workloads. On the workload identical the
// program and the bare client take turns; the others are run once.
func (b *testbed) measureBind() error {
	subject := b.subject()
	spent, err := b.startCost(subject)
	if err != nil {
		return fmt.Errorf("starting %s: %w", subject.name, err)
	}
	b.report.begin("bind")
	for _, n := range slices.Sorted(slices.Values(b.options.sizes)) {
		for _, name := range b.options.workloads {
			w, err := named(workloads, "workload", name)
			if err != nil {
				return err
			}
			contenders, rounds := []contender{subject}, 1
			if w.name == workloads[0].name {
				contenders, rounds = append(contenders, b.part(bareName, "bare-bind")), b.options.rounds
			}
			measure := func(c contender) error { return b.bindRound(c, w, n, spent) }
			if err := takeTurns(rounds, measure, contenders...); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindRound lets a program go through a workload, and removes everything after. spent is
// the CPU time that the program, the bare client apart, takes to start.
func (b *testbed) bindRound(c contender, w workload, n int, spent time.Duration) (err error) {
	all, seen := span{n: n}, newBound()
	m := &measurement{
		result: result{Benchmark: "bind", Case: w.name, Program: c.name, N: n},
		views:  seen.views(), done: seen.all(n), part: true,
		written: []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}},
	}
	var running processes
	defer func() {
		running.stop()
		err = errors.Join(err, b.clear())
	}()
	if w.order == standing {
		m.begin = func() (processes, error) { return b.start(c) }
		m.seen = func(r *result) { seen.seenSince(r, seen.tied, nil) }
		if c.name != bareName {
			m.spent = spent
		}
		err = b.prepareStanding(w, all)
	} else {
		if running, err = b.startWorking(c); err != nil {
			return err
		}
		first, last := w.objects()
		var started time.Time
		var created map[string]time.Time
		m.running, m.own = running, requests{w.creation(): n}
		m.begin = func() (_ processes, err error) {
			started = time.Now()
			created, err = b.create(all, last)
			return running, err
		}
		m.seen = func(r *result) { seen.seenSince(r, started, created) }
		_, err = b.create(all, first)
	}
	if err != nil {
		return fmt.Errorf("preparing %s: %w", w.name, err)
	}
	if running, err = b.measureOnce(m); err != nil {
		return fmt.Errorf("workload %s: %w", w.name, err)
	}
	if m.Wrong, err = b.wrong(w); err != nil {
		return err
	}
	b.report.add(m.result)
	return nil
}

func (b *testbed) prepareStanding(w workload, all span) error {
	if _, err := b.create(all, w.volume); err != nil {
		return err
	}
	if err := b.makeAvailable(); err != nil {
		return err
	}
	_, err := b.create(all, w.claim)
	return err
}

// wrong counts claims that didn't get the volume which is theirs. Where all are
// alike, any is.
func (b *testbed) wrong(w workload) (int, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := b.client.List(b.ctx, claims); err != nil {
		return 0, fmt.Errorf("listing claims: %w", err)
	}
	taken, wrong := map[string]bool{}, 0
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Phase != corev1.ClaimBound || *claim.Spec.StorageClassName != class {
			continue
		}
		volume := claim.Spec.VolumeName
		if taken[volume] || w.different && volume != volumeOf(claim.Name) {
			wrong++
		}
		taken[volume] = true
	}
	return wrong, nil
}

// startWorking starts programs and waits until they bind: until a claim and a
// volume of another class than the workloads' are bound. It works for any
// controller, whatever its probes say.
func (b *testbed) startWorking(contenders ...contender) (processes, error) {
	return b.startReady(b.awaitCanary, contenders...)
}

func (b *testbed) awaitCanary(running processes) error {
	claim := fixture.Claim(fixture.ClaimNamed(canary), fixture.InClass(canary))
	volume := fixture.Volume(canary, fixture.OfClass(canary))
	if err := errors.Join(b.client.Create(b.ctx, volume), b.client.Create(b.ctx, claim)); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(b.ctx, poll, startTimeout, true, func(ctx context.Context) (bool, error) {
		err := errors.Join(running.alive(), b.client.Get(ctx, client.ObjectKeyFromObject(claim), claim))
		return claim.Status.Phase == corev1.ClaimBound, err
	})
}

// startCost is what CPU time programs need to start in an empty cluster, which is no
// part of what a bind costs.
func (b *testbed) startCost(contenders ...contender) (spent time.Duration, err error) {
	defer func() { err = errors.Join(err, b.clear()) }()
	running, err := b.startWorking(contenders...)
	if err != nil {
		return 0, err
	}
	defer running.stop()
	if _, err := b.awaitQuiet(); err != nil {
		return 0, err
	}
	used, err := running.usage()
	return used.cpu, err
}
