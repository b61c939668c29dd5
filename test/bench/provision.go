package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/fixture"
)

const (
	backendTimeout = time.Minute
	// deleteTimeout is how long one claim and its volume may take to go when many
	// do.
	deleteTimeout = 100 * time.Millisecond
	deletePoll    = 200 * time.Millisecond
)

// provisionRound is what came out when n claims got volumes made for them, and then
// were deleted.
type provisionRound struct {
	Program string
	N       int
	// Bound is how many of the claims got a volume.
	Bound     int
	Seconds   float64
	PerSecond float64
	// Writes are all; WritesPerClaim those to claims and volumes, failed ones too,
	// and OthersPerClaim those to all else: events, and the backend's status.
	Writes                         writes
	WritesPerClaim, OthersPerClaim float64
	CPUPerClaim                    milliseconds
	// DeletedPerSecond is how fast claims, volumes and storage went; Left is how
	// many of them all remained. Of the manager only.
	DeletedPerSecond float64
	Left             int
}

// measureProvision has volumes made for claims by the manager and by the bare
// client, in turn. Other programs have no storage that takes no time.
func (b *testbed) measureProvision(o options, report *report) (err error) {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	manager, bare, err := b.provisioners(address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.removeBackend()) }()
	if err := b.prepareBackend(manager); err != nil {
		return err
	}
	report.printProvisionHeader(os.Stdout)
	for i, n := range slices.Sorted(slices.Values(o.provisions)) {
		rounds := o.rounds
		if i > 0 {
			rounds = 1
		}
		for range rounds {
			for _, c := range []contender{manager, bare} {
				result, err := b.provisionRound(c, n, address)
				if err != nil {
					return err
				}
				report.addProvision(os.Stdout, result)
			}
		}
	}
	return nil
}

// provisioners are the manager with storage in memory, and the bare client.
func (b *testbed) provisioners(address string) (manager, bare contender, err error) {
	self, err := os.Executable()
	if err != nil {
		return contender{}, contender{}, fmt.Errorf("finding this program: %w", err)
	}
	manager = contender{name: managerName, command: []string{self, provisionerArgument, b.kubeconfig, address}}
	bare = contender{name: bareName, command: []string{self, bareProvisionArgument, b.kubeconfig}}
	return manager, bare, nil
}

// prepareBackend has the manager accept a backend and make its class, and finds out
// what CPU it needs to start.
func (b *testbed) prepareBackend(manager contender) error {
	object := fixture.LocalBackend(class)
	if err := b.client.Create(b.ctx, object); err != nil {
		return fmt.Errorf("creating a StorageBackend: %w", err)
	}
	p, err := b.run(manager)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(b.ctx, canaryPoll, backendTimeout, true, func(ctx context.Context) (bool, error) {
		err := errors.Join(p.alive(), b.client.Get(ctx, client.ObjectKeyFromObject(object), object))
		return meta.IsStatusConditionTrue(object.Status.Conditions, stowagev1alpha1.ReadyCondition) && object.Status.Audit != nil, err
	})
	p.stop()
	if err != nil {
		return fmt.Errorf("waiting for the manager to accept a StorageBackend: %w", err)
	}
	return b.measureStart(manager)
}

func (b *testbed) removeBackend() error {
	target, storageClass := fixture.LocalBackend(class), fixture.Class(class, "", nil)
	err := patch(b.ctx, b.client, target, object{"metadata": object{"finalizers": nil}})
	err = errors.Join(err, b.client.Delete(b.ctx, target), b.client.Delete(b.ctx, storageClass))
	if err != nil {
		return fmt.Errorf("removing the StorageBackend: %w", err)
	}
	return nil
}

// provisionRound creates claims, lets a program provide them with volumes, and
// removes everything after. The clock starts with the first volume.
func (b *testbed) provisionRound(c contender, n int, address string) (result provisionRound, err error) {
	defer func() { err = errors.Join(err, b.clear()) }()
	if _, err := b.createClaims(workloads[0], span{n: n}); err != nil {
		return result, err
	}
	before, err := b.awaitQuiet()
	if err != nil {
		return result, err
	}
	watching, err := b.observe()
	if err != nil {
		return result, err
	}
	p, err := b.run(c)
	if err != nil {
		return result, err
	}
	defer p.stop()
	first, bound, err := watching.awaitBound(b.ctx, n, p)
	if err != nil {
		return result, fmt.Errorf("waiting for %s to provision: %w", c.name, err)
	}
	result = provisionRound{Program: c.name, N: n, Bound: len(bound), Seconds: lastOf(bound).Sub(first).Seconds()}
	after, err := b.awaitQuiet()
	if err != nil {
		return result, err
	}
	used, err := p.usage()
	if err != nil {
		return result, err
	}
	result.sum(after.since(before), used.cpu-b.starting[c.name])
	if c.name == managerName {
		err = b.deleteProvisioned(&result, p, address)
	}
	return result, err
}

func lastOf(bound map[string]time.Time) time.Time {
	last := time.Time{}
	for _, when := range bound {
		if when.After(last) {
			last = when
		}
	}
	return last
}

func (r *provisionRound) sum(written writes, cpu time.Duration) {
	if r.Bound == 0 {
		return
	}
	of := 0
	for name, count := range written {
		if strings.Contains(name, " persistentvolume") {
			of += count
		}
	}
	r.Writes = written
	r.PerSecond = float64(r.Bound) / r.Seconds
	r.WritesPerClaim = float64(of) / float64(r.Bound)
	r.OthersPerClaim = float64(written.total()-of) / float64(r.Bound)
	r.CPUPerClaim = inMilliseconds(cpu) / milliseconds(r.Bound)
}

// deleteProvisioned deletes all claims, waits until the program removed all that it
// made for them, and counts what is left.
func (b *testbed) deleteProvisioned(result *provisionRound, p *process, address string) error {
	started := time.Now()
	err := inParallel(b.ctx, result.N, func(i int) error {
		return b.client.Delete(b.ctx, fixture.Claim(fixture.ClaimNamed(claimName(i))))
	})
	if err != nil {
		return fmt.Errorf("deleting claims: %w", err)
	}
	timeout := stalled + time.Duration(result.N)*deleteTimeout
	err = wait.PollUntilContextTimeout(b.ctx, deletePoll, timeout, true, func(ctx context.Context) (bool, error) {
		some, err := b.remaining(ctx, client.Limit(1))
		return some == 0, errors.Join(err, p.alive())
	})
	if err != nil && !wait.Interrupted(err) {
		return fmt.Errorf("waiting until all is deleted: %w", err)
	}
	result.DeletedPerSecond = float64(result.N) / time.Since(started).Seconds()
	left, err := b.remaining(b.ctx)
	if err != nil {
		return err
	}
	values, err := readMetrics(b.ctx, "http://"+address+"/metrics", heldMetric)
	result.Left = left + int(values[heldMetric])
	return err
}

// remaining counts claims and volumes.
func (b *testbed) remaining(ctx context.Context, options ...client.ListOption) (int, error) {
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	err := errors.Join(b.client.List(ctx, claims, options...), b.client.List(ctx, volumes, options...))
	if err != nil {
		return 0, fmt.Errorf("listing what is left: %w", err)
	}
	return len(claims.Items) + len(volumes.Items), nil
}
