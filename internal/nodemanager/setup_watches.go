package nodemanager

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/wake"
)

// compareInterval is how often pods and directories are compared without an event.
const compareInterval = 5 * time.Minute

// watchVolumes wakes the pods of volumes whose type reports a change.
func (r *Reconciler) watchVolumes(ctx context.Context, q queue) error {
	for _, plugin := range r.Volumes {
		if watcher, can := plugin.(volumes.Watcher); can {
			go watcher.Watch(ctx, q.Add)
		}
	}
	return nil
}

// watchMounts wakes the pods that lost mounts.
func (r *Reconciler) watchMounts(ctx context.Context, q queue) error {
	go wake.WhileWatching(ctx, "watching the mount table", r.WatchMounts, func() {
		table, err := r.Mounter.Table()
		if err != nil {
			logf.FromContext(ctx).Error(err, "looking for lost mounts")
			return
		}
		for _, pod := range r.losses.Compare(table) {
			q.Add(pod)
		}
	})
	return nil
}

// watchObjects wakes the pods whose projected objects changed.
func (r *Reconciler) watchObjects(_ context.Context, q queue) error {
	r.Objects.OnChange(q.Add)
	return nil
}

// watchDirectories wakes a pod when one of its operations ends, unless its pass sees that. At the
// start, and at each later comparison, it wakes every pod that has a directory. A pod that was deleted
// while the agent was down has no event.
func (r *Reconciler) watchDirectories(ctx context.Context, q queue) error {
	r.operations.OnEnd(q.Add)
	go func() {
		ticker := time.NewTicker(compareInterval)
		defer ticker.Stop()
		for {
			uids, err := r.Tree.Pods()
			if err != nil {
				logf.FromContext(ctx).Error(err, "comparing directories with pods")
			}
			for _, uid := range uids {
				q.Add(uid)
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return nil
}
