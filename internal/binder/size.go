package binder

import (
	"cmp"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// size is an amount of storage in bytes, rounded up. Decimal quantities can exceed int64;
// those are compared exactly.
type size struct {
	bytes  int64
	beyond *resource.Quantity
}

func sizeOf(quantity resource.Quantity) size {
	if quantity.CmpInt64(math.MaxInt64) >= 0 {
		return size{math.MaxInt64, &quantity}
	}
	return size{bytes: quantity.Value()}
}

func (s size) compare(other size) int {
	if s.beyond == nil || other.beyond == nil {
		return cmp.Compare(s.bytes, other.bytes)
	}
	return s.beyond.Cmp(*other.beyond)
}

// String formats a size as in claims: 5Gi.
func (s size) String() string {
	if s.beyond != nil {
		return s.beyond.String()
	}
	return resource.NewQuantity(s.bytes, resource.BinarySI).String()
}

// RequestOf returns the storage request of a claim.
func RequestOf(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// Bytes formats an amount of storage as in claims: 5Gi.
func Bytes(quantity resource.Quantity) string { return sizeOf(quantity).String() }
