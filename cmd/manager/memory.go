package main

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// usableMemory is the part of its container's memory limit that the manager uses. The rest is for what Go's runtime
// does not count.
const usableMemory = 0.9

// limitMemory has Go's runtime collect garbage more often as memory gets scarce. Otherwise the heap of a large
// cluster may double until the next collection, and the kernel kills the manager, at each start again. GOMEMLIMIT
// takes precedence. Without a limit, nothing changes.
func limitMemory(limit memlimit.Provider, log logr.Logger) {
	bytes, err := memlimit.SetGoMemLimitWithOpts(memlimit.WithProvider(limit), memlimit.WithRatio(usableMemory))
	switch {
	case err != nil:
		log.Info("the container's memory limit is unknown, so garbage is collected as if there was none", "error", err.Error())
	case bytes > 0:
		log.Info("keeping below the container's memory limit", "bytes", bytes)
	}
}
