package binder_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

// manySizes is how many volumes of how many sizes the benchmarks look among.
var manySizes = []int{1_000, 10_000, 100_000}

// A match is a Reserve and the Release that makes the next one find the same.
func BenchmarkMatch(b *testing.B) {
	for _, n := range manySizes {
		b.Run(fmt.Sprintf("different sizes/volumes=%d", n), func(b *testing.B) {
			index := bigIndex(n, func(i int) string { return fmt.Sprintf("%dMi", i+1) })
			match(b, index, fixture.Claim(fixture.Asking(fmt.Sprintf("%dMi", n/2))), true)
		})
		b.Run(fmt.Sprintf("one size/volumes=%d", n), func(b *testing.B) {
			match(b, bigIndex(n, func(int) string { return "1Gi" }), fixture.Claim(), true)
		})
		b.Run(fmt.Sprintf("none fits/volumes=%d", n), func(b *testing.B) {
			match(b, bigIndex(n, func(int) string { return "1Gi" }), fixture.Claim(fixture.Asking("1Ti")), false)
		})
	}
}

// BenchmarkMatchOfSmallestTaken is what claims that are bound at once meet: the
// first volumes in order are being bound by other workers.
func BenchmarkMatchOfSmallestTaken(b *testing.B) {
	const workers = 32
	for _, n := range manySizes {
		b.Run(fmt.Sprintf("volumes=%d", n), func(b *testing.B) {
			index := bigIndex(n, func(int) string { return "1Gi" })
			for i := range workers {
				index.Reserve(binder.ClaimRequest{Claim: fixture.Claim(fixture.ClaimUID(fmt.Sprintf("other-%d", i)))})
			}
			match(b, index, fixture.Claim(), true)
		})
	}
}

// BenchmarkPut is an event of a volume that hasn't changed what it is matched by.
func BenchmarkPut(b *testing.B) {
	for _, n := range manySizes {
		b.Run(fmt.Sprintf("volumes=%d", n), func(b *testing.B) {
			index := bigIndex(n, func(i int) string { return fmt.Sprintf("%dMi", i+1) })
			pv := fixture.Volume("volume-1", fixture.Holding("2Mi"))
			b.ReportAllocs()
			for b.Loop() {
				index.Put(pv)
			}
		})
	}
}

// BenchmarkNewVolume adds a volume, which is reserved for one of the pending claims, and
// removes it again.
func BenchmarkNewVolume(b *testing.B) {
	for _, n := range manySizes {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			index := newIndex()
			for i := range n {
				index.Reserve(binder.ClaimRequest{Claim: waitingClaim(i)})
			}
			pv, claim := fixture.Volume("volume", fixture.Holding(fmt.Sprintf("%dMi", n/2))), waitingClaim(n/2-1)
			b.ReportAllocs()
			for b.Loop() {
				index.Put(pv)
				if !index.Reserved(pv.Name) {
					b.Fatal("no claim gets the volume")
				}
				index.Remove(pv.Name)
				index.Reserve(binder.ClaimRequest{Claim: claim})
			}
		})
	}
}

func waitingClaim(i int) *corev1.PersistentVolumeClaim {
	return fixture.Claim(fixture.ClaimNamed(fmt.Sprintf("claim-%d", i)), fixture.ClaimUID(fmt.Sprint(i)), fixture.Asking(fmt.Sprintf("%dMi", i+1)))
}

// BenchmarkExplain explains to one of many claims why no volume fits.
func BenchmarkExplain(b *testing.B) {
	for _, n := range manySizes {
		b.Run(fmt.Sprintf("volumes=%d", n), func(b *testing.B) {
			index := bigIndex(n, func(int) string { return "1Gi" })
			request := binder.ClaimRequest{Claim: fixture.Claim(fixture.Asking("1Ti"))}
			b.ReportAllocs()
			for b.Loop() {
				index.Explain(request)
			}
		})
	}
}

func bigIndex(n int, size func(i int) string) *binder.Index {
	index := newIndex()
	for i := range n {
		index.Put(fixture.Volume(fmt.Sprintf("volume-%d", i), fixture.Holding(size(i))))
	}
	runtime.GC() // what making the volumes left is not part of a match
	return index
}

func match(b *testing.B, index *binder.Index, claim *corev1.PersistentVolumeClaim, fits bool) {
	b.Helper()
	claim.UID = types.UID("claim")
	request := binder.ClaimRequest{Claim: claim}
	b.ReportAllocs()
	for b.Loop() {
		pv := index.Reserve(request)
		if (pv != nil) != fits {
			b.Fatalf("Take returned %v", pv)
		}
		if pv != nil {
			index.Release(pv.Name, claim.UID)
		}
	}
}
