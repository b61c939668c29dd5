package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/fixture"
)

const (
	canary        = "canary"
	canaryTimeout = time.Minute
	canaryPoll    = 20 * time.Millisecond
)

// startWorking starts a program and waits until it binds: until a claim and a
// volume of another class than the workloads' are bound. It works for any
// controller, whatever its probes say.
func (b *testbed) startWorking(c contender, environment ...string) (*process, error) {
	p, err := b.run(c, environment...)
	if err != nil {
		return nil, err
	}
	if err := b.awaitCanary(p); err != nil {
		p.stop()
		return nil, fmt.Errorf("waiting for %s to bind a first claim: %w", c.name, err)
	}
	return p, nil
}

func (b *testbed) awaitCanary(p *process) error {
	claim := fixture.Claim(fixture.ClaimNamed(canary), fixture.InClass(canary))
	volume := fixture.Volume(canary, fixture.OfClass(canary))
	if err := errors.Join(b.client.Create(b.ctx, volume), b.client.Create(b.ctx, claim)); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(b.ctx, canaryPoll, canaryTimeout, true, func(ctx context.Context) (bool, error) {
		err := errors.Join(p.alive(), b.client.Get(ctx, client.ObjectKeyFromObject(claim), claim))
		return claim.Status.Phase == corev1.ClaimBound, err
	})
}

// measureStart finds out what CPU a program needs to start in an empty cluster,
// which is no part of what a bind costs.
func (b *testbed) measureStart(c contender) (err error) {
	defer func() { err = errors.Join(err, b.clear()) }()
	p, err := b.startWorking(c)
	if err != nil {
		return err
	}
	defer p.stop()
	if _, err := b.awaitQuiet(); err != nil {
		return err
	}
	used, err := p.usage()
	b.starting[c.name] = used.cpu
	return err
}
