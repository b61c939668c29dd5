package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	// class is that of all volumes and claims that are measured, and its StorageBackend.
	class = "bench"

	volumePrefix = "volume-"
	claimPrefix  = "claim-"

	// workers is how many write at once, here and in the bare clients: as many as the
	// manager binds with.
	workers = 32

	poll           = 20 * time.Millisecond
	backendTimeout = time.Minute
)

func volumeName(i int) string { return fmt.Sprintf("%s%05d", volumePrefix, i) }

func claimName(i int) string { return fmt.Sprintf("%s%05d", claimPrefix, i) }

func volumeOf(claim string) string { return volumePrefix + strings.TrimPrefix(claim, claimPrefix) }

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

// create creates objects in random order, the same in every round. It returns when each
// creation was answered, by the claim with the object's number.
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

func (b *testbed) createNode(node *corev1.Node) error {
	ready := node.DeepCopy()
	if err := b.client.Create(b.ctx, node); err != nil {
		return err
	}
	node.Status = ready.Status
	return b.client.Status().Update(b.ctx, node)
}

// createBound creates claim and volume number i, bound to each other. What the volume is
// depends on the claim's uid.
func (b *testbed) createBound(i int, volume func(*corev1.PersistentVolumeClaim) *corev1.PersistentVolume) error {
	claim := fixture.Claim(fixture.ClaimNamed(claimName(i)), fixture.InClass(class))
	claim.Finalizers = []string{claimProtection}
	claim.Annotations = map[string]string{annBound: "yes", annBindCompleted: "yes"}
	claim.Spec.VolumeName = volumeName(i)
	if err := b.client.Create(b.ctx, claim); err != nil {
		return err
	}
	pv := volume(claim)
	if err := b.client.Create(b.ctx, pv); err != nil {
		return err
	}
	if err := barePhase(b.ctx, b.client, pv, corev1.VolumeBound); err != nil {
		return err
	}
	return bareStatus(b.ctx, b.client, claim, pv)
}

// awaitBackend waits until a program accepts the StorageBackend, and has looked what
// volumes there are in it, if that is of interest.
func (b *testbed) awaitBackend(running processes, audited bool) error {
	object := &stowagev1alpha1.StorageBackend{}
	err := wait.PollUntilContextTimeout(b.ctx, poll, backendTimeout, true, func(ctx context.Context) (bool, error) {
		err := errors.Join(running.alive(), b.client.Get(ctx, client.ObjectKey{Name: class}, object))
		isReady := meta.IsStatusConditionTrue(object.Status.Conditions, stowagev1alpha1.ReadyCondition)
		return isReady && (object.Status.Audit != nil || !audited), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the StorageBackend to be Ready: %w", err)
	}
	return nil
}

func (b *testbed) makeAvailable() error {
	volumes := &corev1.PersistentVolumeList{}
	if err := b.client.List(b.ctx, volumes); err != nil {
		return fmt.Errorf("listing volumes: %w", err)
	}
	return inParallel(b.ctx, len(volumes.Items), func(i int) error {
		return barePhase(b.ctx, b.client, &volumes.Items[i], corev1.VolumeAvailable)
	})
}

// clear removes all claims and volumes. No program runs that their finalizers protect
// them for.
func (b *testbed) clear() error {
	return b.removeAll(&corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{})
}

func (b *testbed) removeAll(lists ...client.ObjectList) error {
	for _, list := range lists {
		if err := b.client.List(b.ctx, list); err != nil {
			return fmt.Errorf("listing %T: %w", list, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		if err := inParallel(b.ctx, len(items), func(i int) error { return b.remove(items[i].(client.Object)) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *testbed) remove(target client.Object) error {
	err := b.client.Patch(b.ctx, target, merge{"metadata": object{"finalizers": nil}})
	if err == nil {
		err = b.client.Delete(b.ctx, target, client.GracePeriodSeconds(0))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing %s: %w", target.GetName(), err)
	}
	return nil
}
