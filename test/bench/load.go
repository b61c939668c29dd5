package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workers is how many write at once, here and in the bare client: as many as the
// manager binds with.
const workers = 32

// inParallel calls do for 0 to n-1 until one fails.
func inParallel(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, workers, n, func(i int) {
		if err := do(i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// span is the objects number from to from+n-1.
type span struct{ from, n int }

// createVolumes tells of each claim when its volume's creation was answered.
func (b *testbed) createVolumes(w workload, s span) (map[string]time.Time, error) {
	return b.create(s, func(i int) client.Object { return w.volume(i) })
}

func (b *testbed) createClaims(w workload, s span) (map[string]time.Time, error) {
	return b.create(s, func(i int) client.Object { return w.claim(i) })
}

// create creates objects in random order, the same in every round.
func (b *testbed) create(s span, object func(i int) client.Object) (map[string]time.Time, error) {
	order := rand.New(rand.NewPCG(1, 2)).Perm(s.n)
	when := make([]time.Time, s.n)
	err := inParallel(b.ctx, s.n, func(i int) error {
		if err := b.client.Create(b.ctx, object(s.from+order[i])); err != nil {
			return fmt.Errorf("creating objects: %w", err)
		}
		when[order[i]] = time.Now()
		return nil
	})
	created := make(map[string]time.Time, s.n)
	for i, t := range when {
		created[claimName(s.from+i)] = t
	}
	return created, err
}

// makeAvailable does a controller's first write to every volume for it.
func (b *testbed) makeAvailable() error {
	volumes := &corev1.PersistentVolumeList{}
	if err := b.client.List(b.ctx, volumes); err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	return inParallel(b.ctx, len(volumes.Items), func(i int) error {
		return patchStatus(b.ctx, b.client, &volumes.Items[i], types.MergePatchType,
			object{"status": object{"phase": corev1.VolumeAvailable}})
	})
}

// clear removes all claims and volumes. Nothing else runs: their finalizers are
// nobody's.
func (b *testbed) clear() error {
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if err := b.client.List(b.ctx, claims); err != nil {
		return fmt.Errorf("listing claims: %w", err)
	}
	if err := b.client.List(b.ctx, volumes); err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	if err := inParallel(b.ctx, len(claims.Items), func(i int) error { return b.remove(&claims.Items[i]) }); err != nil {
		return err
	}
	return inParallel(b.ctx, len(volumes.Items), func(i int) error { return b.remove(&volumes.Items[i]) })
}

func (b *testbed) remove(target client.Object) error {
	err := patch(b.ctx, b.client, target, object{"metadata": object{"finalizers": nil}})
	if err == nil {
		err = b.client.Delete(b.ctx, target)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing %s: %w", target.GetName(), err)
	}
	return nil
}
