package nodemanager

import (
	"errors"
	"time"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// againAfter is when to try again what failed: as usual, unless only another volume
// cures it. A claim may be bound to another one some day; what a pod names never changes.
// What may be allowed is looked at as often as a claim is.
func (v *DesiredVolume) againAfter(err error, usual time.Duration) time.Duration {
	var allowable mayBeAllowed
	switch {
	case !errors.Is(err, volumes.ErrNotSupported):
		return usual
	case errors.As(err, &allowable):
		return lastClaimWait
	case v.Volume.PersistentVolumeClaim != nil || v.Volume.Ephemeral != nil:
		return lastRetry
	default:
		return 0
	}
}
