package wake

import (
	"context"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// watchRetry is how soon a watch that failed begins again.
const watchRetry = 10 * time.Second

// WhileWatching watches until the context ends, again after each error, and logs what it was doing
// then. watch calls changed after each change.
func WhileWatching(ctx context.Context, doing string, watch func(ctx context.Context, changed func()) error, changed func()) {
	for ctx.Err() == nil {
		if err := watch(ctx, changed); err != nil {
			logf.FromContext(ctx).Error(err, doing)
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchRetry):
		}
	}
}
