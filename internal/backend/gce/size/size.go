// Package size counts capacities as the Compute API does: in whole GiB, which it calls GB.
package size

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
)

// gib is a GB, as Google uses the word, in bytes.
const gib = 1 << 30

// Of is a number of GB, as Google uses the word, in bytes. What is beyond int64 is the most that can be counted.
func Of(gb int64) resource.Quantity {
	return *resource.NewQuantity(min(gb, math.MaxInt64/gib)*gib, resource.BinarySI)
}

// InGib is a capacity in GiB, rounded up.
func InGib(capacity resource.Quantity) int64 {
	whole := capacity.Value() / gib
	if capacity.Value()%gib > 0 {
		whole++
	}
	return whole
}
