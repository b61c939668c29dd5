package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/fixture"
)

// deleteAll deletes the claims, and waits until all that was made for them is gone.
func (s *localStory) deleteAll(result *localRound, programs processes) error {
	before, err := s.countRequests(isAnswered)
	if err != nil {
		return err
	}
	started := time.Now()
	err = inParallel(s.ctx, s.n, func(i int) error {
		return s.client.Delete(s.ctx, fixture.Claim(fixture.ClaimNamed(claimName(i))))
	})
	if err != nil {
		return fmt.Errorf("deleting claims: %w", err)
	}
	timeout := stalled + time.Duration(s.n)*deleteTimeout
	err = wait.PollUntilContextTimeout(s.ctx, deletePoll, timeout, true, func(ctx context.Context) (bool, error) {
		some, err := s.remaining(ctx, client.Limit(1))
		return some == 0, errors.Join(err, programs.alive())
	})
	if err != nil && !wait.Interrupted(err) {
		return fmt.Errorf("waiting until all is deleted: %w", err)
	}
	result.DeletedPerSecond = float64(s.n) / time.Since(started).Seconds()
	after, err := s.countRequests(isAnswered)
	if err != nil {
		return err
	}
	result.DeleteRequests = after.since(before)
	result.Left, err = s.left()
	return err
}

// left counts what remains in the API server and on the disk.
func (s *localStory) left() (int, error) {
	some, err := s.remaining(s.ctx)
	if err != nil {
		return 0, err
	}
	volumes := &stowagev1alpha1.LocalVolumeList{}
	if err := s.client.List(s.ctx, volumes); err != nil {
		return 0, fmt.Errorf("listing LocalVolumes: %w", err)
	}
	onDisk, err := filepath.Glob(filepath.Join(s.folder, "pvc-*"))
	return some + len(volumes.Items) + len(onDisk), err
}

func (s *localStory) clearLocalVolumes() error {
	volumes := &stowagev1alpha1.LocalVolumeList{}
	if err := s.client.List(s.ctx, volumes); err != nil {
		return fmt.Errorf("listing LocalVolumes: %w", err)
	}
	return inParallel(s.ctx, len(volumes.Items), func(i int) error { return s.remove(&volumes.Items[i]) })
}

func (s *localStory) tidy() error {
	err := errors.Join(s.removeBackend(), s.remove(fixture.Node(localNode)), s.clearLocalVolumes(),
		s.client.DeleteAllOf(s.ctx, &stowagev1alpha1.LocalDisk{}))
	return errors.Join(err, os.RemoveAll(s.folder))
}
