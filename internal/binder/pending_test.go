package binder_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/binder"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// wakeful is an index that records which claims it wakes.
type wakeful struct {
	*binder.Index
	woken []string
}

func newWakeful() *wakeful {
	w := &wakeful{}
	w.Index = binder.NewIndex(func(claim types.NamespacedName) { w.woken = append(w.woken, claim.Name) })
	return w
}

// wokenNow returns the claims that were woken since its last call.
func (w *wakeful) wokenNow() []string {
	woken := w.woken
	w.woken = nil
	return woken
}

func named(name string, options ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	return Claim(append(options, ClaimNamed(name), ClaimUID("uid-of-"+name))...)
}

func request(claim *corev1.PersistentVolumeClaim) binder.ClaimRequest {
	return binder.ClaimRequest{Claim: claim}
}

func TestANewVolumeWakesTheLargestPendingClaimThatItFits(t *testing.T) {
	old := func(claim *corev1.PersistentVolumeClaim) { claim.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) }
	young := func(claim *corev1.PersistentVolumeClaim) { claim.CreationTimestamp = metav1.NewTime(time.Unix(2, 0)) }
	for name, test := range map[string]struct {
		claims []*corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		want   []string
	}{
		"by size":                    {[]*corev1.PersistentVolumeClaim{named("a"), named("b", Asking("4Gi")), named("c", Asking("9Gi"))}, Volume("v", Holding("5Gi")), []string{"b"}},
		"the older of equals":        {[]*corev1.PersistentVolumeClaim{named("a", young), named("b", old)}, Volume("v"), []string{"b"}},
		"the first by name of twins": {[]*corev1.PersistentVolumeClaim{named("b"), named("a")}, Volume("v"), []string{"a"}},
		"skipping a selector that does not match": {
			[]*corev1.PersistentVolumeClaim{named("a", Asking("2Gi"), Selecting("disk", "ssd")), named("b")}, Volume("v", Holding("5Gi")), []string{"b"},
		},
		"skipping a request for other access modes": {
			[]*corev1.PersistentVolumeClaim{named("a", Asking("2Gi"), AskingModes(corev1.ReadWriteMany)), named("b")}, Volume("v", Holding("5Gi")), []string{"b"},
		},
		"none of another class":           {[]*corev1.PersistentVolumeClaim{named("a", InClass("fast"))}, Volume("v"), nil},
		"none if it is reserved":          {[]*corev1.PersistentVolumeClaim{named("a")}, Volume("v", ReservedTo("b")), nil},
		"none if it is too small for all": {[]*corev1.PersistentVolumeClaim{named("a", Asking("5Gi"))}, Volume("v"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			index := newWakeful()
			for _, claim := range test.claims {
				index.Reserve(request(claim))
			}
			index.Put(test.volume)
			if woken := index.wokenNow(); !slices.Equal(woken, test.want) {
				t.Errorf("it wakes %v, not %v", woken, test.want)
			}
		})
	}
}

func TestATentativelyReservedVolumeGoesToNoOtherClaim(t *testing.T) {
	index, first, second := newWakeful(), named("first"), named("second")
	index.Reserve(request(first))
	index.Put(Volume("v"))
	if got := index.Reserve(request(second)); got != nil {
		t.Errorf("a later claim got %s", got.Name)
	}
	if got := nameOf(index.Reserve(request(first))); got != "v" {
		t.Errorf("the pending claim got %q, not its volume", got)
	}
}

func TestAClaimThatGetsABetterVolumeReleasesTheTentativeOne(t *testing.T) {
	index, first, second := newWakeful(), named("first", Asking("2Gi")), named("second")
	index.Reserve(request(first))
	index.Put(Volume("big", Holding("9Gi")))
	index.Put(Volume("small", Holding("2Gi")))
	index.Reserve(request(second))
	index.wokenNow()
	if got := nameOf(index.Reserve(request(first))); got != "big" {
		t.Errorf("it got %q, and second has small", got)
	}
	index.Release("small", second.UID)
	index.Release("big", first.UID)
	if got := nameOf(index.Reserve(request(first))); got != "small" {
		t.Errorf("it got %q, not the smallest", got)
	}
}

func TestAVolumeThatAClaimDoesNotUseGoesToTheNext(t *testing.T) {
	for name, end := range map[string]func(index *wakeful, claim *corev1.PersistentVolumeClaim){
		"when it is removed": func(index *wakeful, claim *corev1.PersistentVolumeClaim) {
			index.RemovePending(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
		},
		"when it requests another class now": func(index *wakeful, claim *corev1.PersistentVolumeClaim) {
			InClass("fast")(claim)
			index.Reserve(request(claim))
		},
		"when it names another volume now": func(index *wakeful, claim *corev1.PersistentVolumeClaim) {
			AskingFor("other")(claim)
			index.ReserveNamed(request(claim))
		},
		"when binding it fails": func(index *wakeful, claim *corev1.PersistentVolumeClaim) {
			index.Reserve(request(claim))
			index.Release("v", claim.UID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			index, first, second := newWakeful(), named("first"), named("second")
			index.Reserve(request(first))
			index.Reserve(request(second))
			index.Put(Volume("v"))
			index.wokenNow()
			end(index, first)
			if woken := index.wokenNow(); !slices.Equal(woken, []string{"second"}) {
				t.Errorf("%v are woken", woken)
			}
		})
	}
}

func TestAClaimThatLosesItsTentativeVolumeGetsAnotherOrIsPendingAgain(t *testing.T) {
	for name, end := range map[string]func(*wakeful){
		"deleted":              func(index *wakeful) { index.Remove("v") },
		"reserved for another": func(index *wakeful) { index.Put(Volume("v", ReservedTo("another"))) },
		"relabelled":           func(index *wakeful) { index.Put(Volume("v", Holding("1Mi"))) },
		"named by a claim":     func(index *wakeful) { index.AddPreBound(named("prebound", AskingFor("v"))) },
		"reserved by name":     func(index *wakeful) { index.ReserveNamed(request(named("prebound", AskingFor("v")))) },
	} {
		t.Run(name, func(t *testing.T) {
			index := newWakeful()
			index.Reserve(request(named("first")))
			index.Put(Volume("v"))
			index.wokenNow()
			end(index)
			index.Put(Volume("w"))
			if woken := index.wokenNow(); !slices.Equal(woken, []string{"first"}) {
				t.Errorf("%v are woken for the next volume", woken)
			}
		})
	}
}

func TestAVolumeThatNoClaimNamesAnyMoreWakesAPendingClaim(t *testing.T) {
	index, preBound := newWakeful(), named("prebound", AskingFor("v"))
	index.AddPreBound(preBound)
	index.Put(Volume("v"))
	index.Reserve(request(named("first")))
	index.RemovePreBound(preBound)
	if woken := index.wokenNow(); !slices.Equal(woken, []string{"first"}) {
		t.Errorf("%v are woken", woken)
	}
}

func TestAClaimThatWaitsForItsConsumerGetsNoNewVolume(t *testing.T) {
	index := newWakeful()
	index.Reserve(binder.ClaimRequest{Claim: named("delayed"), Delayed: true})
	index.Put(Volume("v"))
	if woken := index.wokenNow(); len(woken) > 0 {
		t.Errorf("%v are woken", woken)
	}
}

func TestPendingReturnsTheClaimsOfAClassWithoutAVolume(t *testing.T) {
	index := newWakeful()
	index.Reserve(request(named("fast", InClass("fast"))))
	index.Reserve(request(named("slow", InClass("slow"))))
	index.Reserve(request(named("served", InClass("fast"), Asking("1Mi"))))
	index.RemovePending(types.NamespacedName{Namespace: Namespace, Name: "served"})
	if got := index.Pending("fast"); len(got) != 1 || got[0].Name != "fast" {
		t.Errorf("%v are pending", got)
	}
}

func TestAVolumeThatChangesWhileItIsBeingBoundStaysReservedForItsClaim(t *testing.T) {
	version := func(version string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.ResourceVersion = version }
	}
	index, first, second := newWakeful(), named("first"), named("second")
	index.Reserve(request(first))
	index.Reserve(request(second))
	index.Put(Volume("v", version("1")))
	index.Reserve(request(first))
	index.Put(Volume("v", version("2")))
	index.Release("v", first.UID)
	if woken := index.wokenNow(); !slices.Equal(woken, []string{"first", "first"}) {
		t.Errorf("%v are woken", woken)
	}
	if got := nameOf(index.Reserve(request(first))); got != "v" {
		t.Errorf("the second try reserves %q", got)
	}
}

func TestAClaimReservesOneVolumeHoweverOftenItTries(t *testing.T) {
	index := indexOf(Volume("v", Holding("2Gi")))
	claim := named("claim")
	index.Reserve(request(claim))
	index.Put(Volume("smaller"))
	if got := nameOf(index.Reserve(request(claim))); got != "v" {
		t.Errorf("before the informer saw the first bind, it reserves %q too", got)
	}
	if got := nameOf(index.Reserve(request(named("other")))); got != "smaller" {
		t.Errorf("another claim reserves %q", got)
	}
}

func TestAVolumeIsReservedWhileAClaimIsAboutToBeBoundToIt(t *testing.T) {
	index, claim := newWakeful(), named("claim")
	reserved := func(when string, want bool) {
		t.Helper()
		if index.Reserved("v") != want {
			t.Errorf("%s it is reserved: %t", when, !want)
		}
	}
	reserved("before it is known", true)
	index.Put(Volume("v"))
	reserved("while no claim requests it", false)
	index.Reserve(request(claim))
	reserved("while it is being bound", true)
	index.Release("v", claim.UID)
	reserved("released", false)
	index.Reserve(request(named("big", Asking("9Gi"))))
	index.Put(Volume("v", Holding("9Gi")))
	reserved("tentatively reserved", true)
	index.Remove("v")
	bound := Volume("v")
	binder.BindVolume(bound, claim)
	index.Put(bound)
	reserved("once bound, to a reader of the earlier version", true)
}
