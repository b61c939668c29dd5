package nodemanager

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stowage-dev/stowage/test/harness/killpoint"
)

const (
	// strideVariable names how many steps apart the kills are. `make kill-matrix` sets 1.
	strideVariable = "STOWAGE_KILL_STRIDE"
	// sampleStride keeps `make test` short: it takes a sample of the steps.
	sampleStride = 7
)

// kills returns the first step before which a node manager is killed, and how far apart
// the next ones are. A sample begins at a random step, so that runs differ.
func kills(t *testing.T) (first, stride int) {
	t.Helper()
	stride = sampleStride
	if asked := os.Getenv(strideVariable); asked != "" {
		var err error
		if stride, err = strconv.Atoi(asked); err != nil || stride < 1 {
			t.Fatalf("%s=%s: want a number from 1", strideVariable, asked)
		}
	}
	first = killpoint.Never + 1 + rand.IntN(stride)
	t.Logf("killed before step %d, and every %d thereafter", first, stride)
	return first, stride
}
