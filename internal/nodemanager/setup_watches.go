package nodemanager

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// watchVolumes has pods looked at of which a volume type notices something by itself.
func (r *Reconciler) watchVolumes(ctx context.Context, q queue) error {
	for _, plugin := range r.Volumes {
		if watcher, can := plugin.(volumes.Watcher); can {
			go watcher.Watch(ctx, q.Add)
		}
	}
	return nil
}

// watchMounts wakes the pods that mounts are gone of.
func (r *Reconciler) watchMounts(ctx context.Context, q queue) error {
	look := func() {
		table, err := r.Mounter.Table()
		if err != nil {
			logf.FromContext(ctx).Error(err, "looking for mounts that are gone")
			return
		}
		for _, pod := range r.losses.Look(table) {
			q.Add(pod)
		}
	}
	go func() {
		for ctx.Err() == nil {
			if err := r.WatchMounts(ctx, look); err != nil {
				logf.FromContext(ctx).Error(err, "watching the mount table")
			}
			select {
			case <-ctx.Done():
			case <-time.After(watchMountsRetry):
			}
		}
	}()
	return nil
}

// watchMountsRetry is how soon the mount table is watched again after that failed.
const watchMountsRetry = 10 * time.Second
