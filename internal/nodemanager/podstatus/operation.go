package podstatus

import (
	"time"

	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
)

// SlowOperation is after how long a running operation is reported in the pod's condition.
const SlowOperation = 5 * time.Second

// OfOperation is the progress of a volume after its operation was requested.
func OfOperation(outcome operations.Outcome) Progress {
	switch {
	case outcome.Err != nil:
		return Progress{Err: outcome.Err, Again: outcome.RetryAfter}
	case outcome.QueuedFor >= SlowOperation:
		return Progress{Err: resolve.WaitFor("queued: many volumes of its type are being mounted or unmounted"), Again: SlowOperation}
	case outcome.RunningFor >= SlowOperation:
		return Progress{Err: resolve.WaitFor("mounting takes long: does the storage answer?"), Again: SlowOperation}
	default:
		return Progress{Again: SlowOperation}
	}
}
