package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// restPoll is how often a program that starts is looked at.
	restPoll = 20 * time.Millisecond
	// atRest is how long it may use no more than restCPU of CPU time until it counts as having nothing left to do.
	atRest  = time.Second
	restCPU = 20 * time.Millisecond
)

// restart is what an agent does that is started on a node whose pods have all that they need.
type restart struct {
	// Seconds is how long it is at work, from the start of its process.
	Seconds float64
	// Reads is how many requests of the API server it needs, without watches and leases.
	Reads int
}

// restart stops a program, starts it again, and measures until it has nothing left to do.
func (b *testbed) restart(running processes, c contender) (processes, restart, error) {
	running.stop()
	before, err := b.awaitQuiet()
	if err != nil {
		return nil, restart{}, err
	}
	started := time.Now()
	if running, err = b.start(c); err != nil {
		return nil, restart{}, err
	}
	worked, err := b.awaitRest(running)
	if err != nil {
		return running, restart{}, fmt.Errorf("waiting until %s has nothing left to do: %w", c.name, err)
	}
	after, err := b.awaitQuiet()
	return running, restart{Seconds: worked.Sub(started).Seconds(), Reads: after.since(before).total()}, err
}

// awaitRest returns when programs last worked, once they rest.
func (b *testbed) awaitRest(running processes) (worked time.Time, err error) {
	var used time.Duration
	worked = time.Now()
	err = wait.PollUntilContextTimeout(b.ctx, restPoll, calmTimeout, true, func(context.Context) (bool, error) {
		now, err := running.usage()
		if err != nil {
			return false, err
		}
		if now.cpu-used > restCPU {
			used, worked = now.cpu, time.Now()
		}
		return used > 0 && time.Since(worked) > atRest, running.alive()
	})
	return worked, err
}
