package nodemanager

import "time"

// claimWait is how long to wait before the n-th look at a claim.
func claimWait(n int) time.Duration {
	return min(firstClaimWait<<min(max(n-1, 0), 16), lastClaimWait)
}

// firstClaimWait and lastClaimWait bound how long a pod waits before its
// claim is looked at again. A node may only get claims, not watch them.
const firstClaimWait = 500 * time.Millisecond

const lastClaimWait = 10 * time.Second

// soonest is the first time at which one of the volumes wants to be looked at.
func soonest(volumes []progress) time.Duration {
	var first time.Duration
	for _, volume := range volumes {
		if volume.again > 0 && (first == 0 || volume.again < first) {
			first = volume.again
		}
	}
	return first
}
