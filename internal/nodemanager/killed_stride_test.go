package nodemanager

import (
	"math/rand/v2"
	"testing"

	"github.com/stowage-dev/stowage/test/killpoint"
)

// firstStep is the first step before which somebody is killed, and the others are stride
// apart. The race detector makes every step slow: with it, a sample of them is taken,
// another one each time.
func firstStep(t *testing.T) int {
	t.Helper()
	first := killpoint.Never + 1 + rand.IntN(stride)
	t.Logf("killed before step %d, and every %d thereafter", first, stride)
	return first
}
