package nodemanager

import (
	"context"

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
