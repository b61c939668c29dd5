package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	deleteTimeout = 100 * time.Millisecond
	deletePoll    = 50 * time.Millisecond

	localNode = "bench-node"
	// localSize is what each claim of the benchmark local asks for: room for an ext4.
	localSize = "16Mi"
)

type provisioning struct {
	*testbed
	benchmark, of string
	size          string
	// classes are those of the claims, in turn.
	classes []string
	// began is when the clock starts, of what was seen.
	began func(*bound) time.Time
	held  func() (int, error)
	// bareDeletes is whether the bare client removes what is deleted.
	bareDeletes bool
	// tidy removes, after a round, what clear doesn't.
	tidy func() error
	// spent is the CPU time that the programs take to start, but for the bare client.
	spent time.Duration
}

// measureProvision has volumes made in storage that takes no time, by the manager and by
// the bare client, in turn. Other programs have no such storage.
func (b *testbed) measureProvision() (err error) {
	address, err := cluster.FreeAddress()
	if err != nil {
		return err
	}
	manager, bare := b.part(managerName, "provisioner", address), b.part(bareName, "bare-provision")
	defer func() { err = errors.Join(err, b.removeBackend()) }()
	if err := b.prepareBackend(fixture.LocalBackend(class), true, manager); err != nil {
		return err
	}
	p := provisioning{
		testbed: b, benchmark: "provision", of: "provision", size: workloads[0].size(0), classes: []string{class},
		began: func(seen *bound) time.Time { return seen.tied },
		held: func() (int, error) {
			values, err := readMetrics(b.ctx, address, heldMetric)
			return int(values[heldMetric]), err
		},
		tidy: func() error { return nil }, bareDeletes: true,
	}
	if p.spent, err = b.startCost(manager); err != nil {
		return err
	}
	b.report.begin("provision")
	rounds := b.options.rounds
	for _, n := range slices.Sorted(slices.Values(b.options.provisions)) {
		if err := takeTurns(rounds, func(c contender) error { return p.round(n, c) }, manager, bare); err != nil {
			return err
		}
		rounds = 1
	}
	return nil
}

// measureLocal has volumes made on this machine's disk, in both layouts, by manager and
// node agent and by the bare client, in turn.
func (b *testbed) measureLocal() error {
	b.report.begin("local")
	for _, layout := range []stowagev1alpha1.LocalLayout{stowagev1alpha1.LayoutDirectory, stowagev1alpha1.LayoutImage} {
		if err := b.measureLayout(layout); err != nil {
			return fmt.Errorf("layout %s: %w", layout, err)
		}
	}
	return nil
}

func (b *testbed) measureLayout(layout stowagev1alpha1.LocalLayout) (err error) {
	folder, bareFolder := filepath.Join(b.dir, "disks"), filepath.Join(b.dir, "bare")
	node, agent, manager := fixture.Node(localNode), b.agent(localNode), b.subject(elects...)
	bare := b.part(bareName, "bare-local", string(layout), bareFolder)
	defer func() {
		err = errors.Join(err, b.removeBackend(), b.remove(node), b.removeAll(&stowagev1alpha1.NodeVolumeList{}),
			b.client.DeleteAllOf(b.ctx, &stowagev1alpha1.NodeDisk{}), os.RemoveAll(folder))
	}()
	if err := b.createNode(node); err != nil {
		return err
	}
	onDisk := fixture.LocalBackend(class, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local.Path = stowagev1alpha1.AbsolutePath(folder)
		object.Spec.Local.Layout = layout
		object.Spec.MaxConcurrentOperations = 1000
		object.Spec.StorageClass.VolumeBindingMode = storagev1.VolumeBindingImmediate
	})
	if err := b.prepareBackend(onDisk, false, agent, manager); err != nil {
		return err
	}
	p := provisioning{
		testbed: b, benchmark: "local", of: string(layout), size: localSize, classes: []string{class},
		// The manager asks for many volumes before it records the first.
		began: func(seen *bound) time.Time { return seen.touched },
		held: func() (int, error) {
			volumes := &stowagev1alpha1.NodeVolumeList{}
			if err := b.client.List(b.ctx, volumes); err != nil {
				return 0, err
			}
			files, err := filepath.Glob(filepath.Join(folder, "pvc-*"))
			return len(volumes.Items) + len(files), err
		},
		tidy: func() error {
			return errors.Join(b.removeAll(&stowagev1alpha1.NodeVolumeList{}), os.RemoveAll(bareFolder))
		},
	}
	return takeTurns(b.options.rounds, func(c contender) error {
		if c.name == bareName {
			return p.round(b.options.locals, bare)
		}
		return p.round(b.options.locals, agent, manager)
	}, manager, bare)
}

func (b *testbed) prepareBackend(object client.Object, audited bool, programs ...contender) error {
	if err := b.client.Create(b.ctx, object); err != nil {
		return fmt.Errorf("creating a StorageBackend: %w", err)
	}
	running, err := b.start(programs...)
	if err != nil {
		return err
	}
	defer running.stop()
	return b.awaitBackend(running, audited)
}

func (b *testbed) removeBackend() error {
	return errors.Join(b.remove(fixture.LocalBackend(class)), b.remove(fixture.Class(class, "", nil)))
}

// round creates claims, lets programs, the last of which binds, make volumes for them,
// and removes everything after.
func (p *provisioning) round(n int, programs ...contender) (err error) {
	defer func() { err = errors.Join(err, p.clear(), p.tidy()) }()
	_, err = p.create(span{n: n}, func(i int) client.Object {
		return fixture.Claim(fixture.ClaimNamed(claimName(i)), fixture.InClass(p.classes[i%len(p.classes)]), fixture.Asking(p.size))
	})
	if err != nil {
		return err
	}
	seen := newBound()
	m := &measurement{
		result: result{Benchmark: p.benchmark, Case: p.of, Program: programs[len(programs)-1].name, N: n},
		views:  seen.views(), done: seen.all(n), part: true,
		begin: func() (processes, error) { return p.start(programs...) },
		seen: func(r *result) {
			seen.seenSince(r, p.began(seen), nil)
			r.Spread = seen.spread(p.began(seen))
		},
		resources: []string{"persistentvolumeclaims", "persistentvolumes"},
		written:   []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &stowagev1alpha1.NodeVolumeList{}},
	}
	if m.Program != bareName {
		m.spent = p.spent
	}
	running, err := p.measureOnce(m)
	defer running.stop()
	if err == nil && (m.Program != bareName || p.bareDeletes) {
		err = p.deleteAll(&m.result, running)
	}
	if err != nil {
		return err
	}
	p.report.add(m.result)
	return nil
}

// deleteAll deletes all claims, waits until the programs removed all that they made for
// them, and counts what is left.
func (p *provisioning) deleteAll(got *result, running processes) error {
	before, err := p.countRequests()
	if err != nil {
		return err
	}
	whole, err := wholeCPU()
	if err != nil {
		return err
	}
	started := time.Now()
	err = inParallel(p.ctx, got.N, func(i int) error {
		return p.client.Delete(p.ctx, fixture.Claim(fixture.ClaimNamed(claimName(i))))
	})
	if err != nil {
		return fmt.Errorf("deleting claims: %w", err)
	}
	timeout := stalled + time.Duration(got.N)*deleteTimeout
	err = wait.PollUntilContextTimeout(p.ctx, deletePoll, timeout, true, func(ctx context.Context) (bool, error) {
		some, err := p.remaining(ctx, client.Limit(1))
		return some == 0, errors.Join(err, running.alive())
	})
	if err != nil && !wait.Interrupted(err) {
		return fmt.Errorf("waiting until all is deleted: %w", err)
	}
	got.DeletedPerSecond = float64(got.N) / time.Since(started).Seconds()
	if got.DeleteAllEach, err = cpuEach(whole, got.N); err != nil {
		return err
	}
	after, err := p.countRequests()
	if err != nil {
		return err
	}
	got.DeleteRequests = after.since(before)
	objects, err := p.remaining(p.ctx)
	got.Left = objects
	if err != nil || got.Program == bareName {
		return err
	}
	held, err := p.held()
	got.Left += held
	return err
}

func (b *testbed) remaining(ctx context.Context, options ...client.ListOption) (int, error) {
	left := 0
	for _, list := range []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}} {
		if err := b.client.List(ctx, list, options...); err != nil {
			return 0, fmt.Errorf("listing what is left: %w", err)
		}
		left += meta.LenList(list)
	}
	return left, nil
}
