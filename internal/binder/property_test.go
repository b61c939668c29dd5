package binder_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/stowage-dev/stowage/internal/binder"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// The index must answer as a scan over all volumes and all pending claims does, whatever
// happened before.
func TestTheIndexAnswersAsAScanDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index, naive := newWakeful(), newScan()
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { compare(t, index, naive) },
			"put": func(t *rapid.T) {
				pv := drawVolume(t)
				index.Put(pv)
				naive.put(pv)
			},
			"remove": func(t *rapid.T) {
				name := drawName(t, "volume")
				index.Remove(name)
				naive.remove(name)
			},
			"reserve": func(t *rapid.T) {
				request := drawRequest(t)
				got, want := index.Reserve(request), naive.reserve(request)
				if nameOf(got) != nameOf(want) {
					t.Fatalf("the index reserves %q, the scan %q, for %+v", nameOf(got), nameOf(want), request.Claim.Spec)
				}
			},
			"release": func(t *rapid.T) {
				name, claim := drawName(t, "volume"), drawClaim(t)
				index.Release(name, claim.UID)
				naive.release(name, claim.UID)
			},
			"remove pending": func(t *rapid.T) {
				claim := drawClaim(t)
				index.RemovePending(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
				naive.removePending(claim.Name)
			},
			"add pre-bound": func(t *rapid.T) {
				preBound := drawPreBound(t)
				index.AddPreBound(preBound)
				naive.addPreBound(preBound)
			},
			"remove pre-bound": func(t *rapid.T) {
				preBound := drawPreBound(t)
				index.RemovePreBound(preBound)
				naive.removePreBound(preBound)
			},
			"explain": func(t *rapid.T) {
				request := drawRequest(t)
				if got, want := index.Counts(request), naive.counts(request); !maps.Equal(got, want) {
					t.Fatalf("the index counts %v, the scan %v, for %+v", got, want, request.Claim.Spec)
				}
			},
		})
	})
}

// compare fails unless both woke the same claims, and no claim is pending that a free volume
// fits.
func compare(t *rapid.T, index *wakeful, naive *scan) {
	got := index.wokenNow()
	slices.Sort(got)
	slices.Sort(naive.woken)
	if !slices.Equal(got, naive.woken) {
		t.Fatalf("the index wakes %v, the scan %v", got, naive.woken)
	}
	naive.woken = nil
	for name, request := range naive.pending {
		if pv := naive.findFree(request); pv != nil && naive.tentative[name] == "" {
			t.Fatalf("claim %s is pending, and volume %s is free", name, pv.Name)
		}
	}
}

func drawVolume(t *rapid.T) *corev1.PersistentVolume {
	pv := Volume(drawName(t, "volume"),
		Holding(drawSize(t)), OfClass(drawClass(t)), WithModes(drawModes(t)...), Labelled("disk", drawOne(t, "label", "ssd", "hdd")))
	pv.ResourceVersion = drawOne(t, "version", "1", "2", "3")
	pv.CreationTimestamp = metav1.NewTime(time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "age")), 0))
	switch rapid.IntRange(0, 9).Draw(t, "reference") {
	case 0:
		ReservedTo(drawName(t, "claim"))(pv)
	case 1:
		binder.BindVolume(pv, drawClaim(t))
	case 2:
		pv.Status.Phase = corev1.VolumeFailed
	case 3:
		pv.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	case 4:
		OnNode("node-1")(pv)
	}
	return pv
}

func drawRequest(t *rapid.T) binder.ClaimRequest {
	request := binder.ClaimRequest{Claim: drawClaim(t), Delayed: rapid.IntRange(0, 5).Draw(t, "delayed") == 0}
	if rapid.Bool().Draw(t, "placed") {
		request.Node = Node(drawOne(t, "node", "node-1", "node-2"))
	}
	return request
}

// drawClaim draws one of a few claims; the same name is always the same claim.
func drawClaim(t *rapid.T) *corev1.PersistentVolumeClaim {
	name := drawName(t, "claim")
	claim := Claim(ClaimNamed(name), ClaimUID("uid-of-"+name), Asking(drawSize(t)), InClass(drawClass(t)), AskingModes(drawModes(t)...))
	if rapid.IntRange(0, 3).Draw(t, "selecting") == 0 {
		Selecting("disk", "ssd")(claim)
	}
	return claim
}

// drawPreBound draws one of a few claims that name a volume, each always the same.
func drawPreBound(t *rapid.T) *corev1.PersistentVolumeClaim {
	name := drawName(t, "volume")
	return Claim(ClaimNamed("prebound-to-"+name), ClaimUID("uid-of-prebound-to-"+name), AskingFor(name), Asking("1.5Gi"))
}

func drawName(t *rapid.T, kind string) string {
	return fmt.Sprintf("%s-%d", kind, rapid.IntRange(0, 9).Draw(t, kind))
}

func drawSize(t *rapid.T) string {
	return drawOne(t, "size", "1Gi", "2Gi", "1.5Gi", "2048Mi", "1Ti", "9E", "200E")
}

func drawClass(t *rapid.T) string { return drawOne(t, "class", "", "fast") }

func drawModes(t *rapid.T) []corev1.PersistentVolumeAccessMode {
	return rapid.SampledFrom([][]corev1.PersistentVolumeAccessMode{
		{corev1.ReadWriteOnce}, {corev1.ReadOnlyMany}, {corev1.ReadWriteOnce, corev1.ReadOnlyMany},
	}).Draw(t, "modes")
}

func drawOne(t *rapid.T, what string, values ...string) string {
	return rapid.SampledFrom(values).Draw(t, what)
}
