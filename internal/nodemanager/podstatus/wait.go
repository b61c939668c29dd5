package podstatus

import "time"

// ClaimWait is how long to wait before a claim is read for the n-th time.
func ClaimWait(n int) time.Duration {
	return min(FirstClaimWait<<min(max(n-1, 0), 16), LastClaimWait)
}

// FirstClaimWait and LastClaimWait bound how long a pod waits before its claim is read again. A
// node may only get claims, not watch them.
const (
	FirstClaimWait = 500 * time.Millisecond
	LastClaimWait  = 10 * time.Second
)

// Soonest is the earliest time at which one of the volumes is to be reconciled again.
func Soonest(volumes []Progress) time.Duration {
	var first time.Duration
	for _, volume := range volumes {
		if volume.Again > 0 && (first == 0 || volume.Again < first) {
			first = volume.Again
		}
	}
	return first
}
