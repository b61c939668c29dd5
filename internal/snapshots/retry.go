package snapshots

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	// Backoff is the first delay of a repeated call about a snapshot.
	Backoff = time.Second
	// BackoffMax is its last delay, and that of a call which only a person's change helps.
	BackoffMax = 5 * time.Minute
	// UntilReady is how often a snapshot is asked for that the storage still uploads.
	UntilReady = 10 * time.Second
	// SyncTimeout is how long a cache may take to show all objects: a CRD that is removed just then must not end the manager.
	SyncTimeout = 24 * time.Hour
)

// Retry returns when a call about a snapshot is repeated. What only a person cures is tried rarely.
func Retry(failure error) (ctrl.Result, error) {
	switch backend.KindOf(failure) {
	case backend.Invalid, backend.Conflict, backend.NotFound:
		return ctrl.Result{RequeueAfter: BackoffMax}, nil
	case backend.InProgress:
		return ctrl.Result{RequeueAfter: UntilReady}, nil
	default:
		return ctrl.Result{}, failure
	}
}
