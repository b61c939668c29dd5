package binder_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/internal/binder"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestTheSmallestVolumeThatFitsIsReserved(t *testing.T) {
	young := func(pv *corev1.PersistentVolume) { pv.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0)) }
	old := func(pv *corev1.PersistentVolume) { pv.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0)) }

	for name, test := range map[string]struct {
		volumes []*corev1.PersistentVolume
		claim   *corev1.PersistentVolumeClaim
		want    string
	}{
		"by size": {
			[]*corev1.PersistentVolume{Volume("big", Holding("10Gi")), Volume("small", Holding("5Gi")), Volume("tiny")},
			Claim(Asking("4Gi")), "small",
		},
		"across sets of access modes": {
			[]*corev1.PersistentVolume{
				Volume("huge", Holding("1Ti")),
				Volume("small", Holding("10Gi"), WithModes(corev1.ReadWriteOnce, corev1.ReadOnlyMany)),
			},
			Claim(Asking("5Gi")), "small",
		},
		"by size, of more than 8EiB": {
			[]*corev1.PersistentVolume{Volume("a", Holding("900E")), Volume("b", Holding("500E")), Volume("c", Holding("200E"))},
			Claim(Asking("300E")), "b",
		},
		"none of more than 8EiB that is too small": {
			[]*corev1.PersistentVolume{Volume("v", Holding("200E"))},
			Claim(Asking("900E")), "",
		},
		"the one with the fewest access modes, of equal sizes": {
			[]*corev1.PersistentVolume{Volume("a", old, WithModes(corev1.ReadWriteOnce, corev1.ReadWriteMany)), Volume("b", young)},
			Claim(), "b",
		},
		"the older of equals": {
			[]*corev1.PersistentVolume{Volume("a", young), Volume("b", old)},
			Claim(), "b",
		},
		"the first by name of twins": {
			[]*corev1.PersistentVolume{Volume("b"), Volume("a")},
			Claim(), "a",
		},
		"a larger one that is reserved before a smaller one that is not": {
			[]*corev1.PersistentVolume{Volume("small"), Volume("mine", Holding("1Ti"), ReservedTo("data"))},
			Claim(), "mine",
		},
		"another where the reserved one is too small": {
			[]*corev1.PersistentVolume{Volume("mine", ReservedTo("data")), Volume("big", Holding("5Gi"))},
			Claim(Asking("5Gi")), "big",
		},
		"none where none fits": {
			[]*corev1.PersistentVolume{Volume("small"), Volume("fast", OfClass("fast"), Holding("9Gi"))},
			Claim(Asking("5Gi")), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			index := indexOf(test.volumes...)
			if got := nameOf(index.Reserve(binder.ClaimRequest{Claim: test.claim})); got != test.want {
				t.Errorf("volume %q is reserved, not %q", got, test.want)
			}
		})
	}
}

func TestADelayedClaimGetsOnlyAVolumeWithAClaimRefToIt(t *testing.T) {
	index := indexOf(Volume("free"))
	request := binder.ClaimRequest{Claim: Claim(ClaimUID("1")), Delayed: true}
	if got := index.Reserve(request); got != nil {
		t.Errorf("volume %s is reserved", got.Name)
	}
	index.Put(Volume("mine", ReservedTo("data")))
	if got := nameOf(index.Reserve(request)); got != "mine" {
		t.Errorf("volume %q is reserved, not the one with the claimRef", got)
	}
}

func TestAVolumeThatIsBeingBoundIsNotReservedTwice(t *testing.T) {
	index := indexOf(Volume("v"))
	first, second := Claim(ClaimNamed("first"), ClaimUID("1")), Claim(ClaimNamed("second"), ClaimUID("2"))
	if index.Reserve(binder.ClaimRequest{Claim: first}) == nil {
		t.Fatal("the first claim got nothing")
	}
	if index.Reserve(binder.ClaimRequest{Claim: second}) != nil {
		t.Error("the second claim got the first one's volume")
	}
	if index.Reserve(binder.ClaimRequest{Claim: first}) == nil {
		t.Error("the first claim, trying again, did not get its volume")
	}
	index.Put(Volume("v"))
	if index.Reserve(binder.ClaimRequest{Claim: second}) != nil {
		t.Error("an old view of the volume made it free again")
	}
	index.Release("v", "1")
	if index.Reserve(binder.ClaimRequest{Claim: second}) == nil {
		t.Error("a released volume is not reserved again")
	}
}

func TestManyWorkersNeverShareAVolume(t *testing.T) {
	const n = 200
	index := newIndex()
	for i := range n {
		index.Put(Volume(fmt.Sprint("v", i)))
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	owners := map[string]string{}
	for i := range n {
		workers.Go(func() {
			claim := Claim(ClaimNamed(fmt.Sprint("c", i)), ClaimUID(fmt.Sprint(i)))
			pv := index.Reserve(binder.ClaimRequest{Claim: claim})
			mu.Lock()
			defer mu.Unlock()
			if other, reserved := owners[nameOf(pv)]; reserved {
				t.Errorf("%s and %s both got volume %q", other, claim.Name, nameOf(pv))
			}
			owners[nameOf(pv)] = claim.Name
		})
	}
	workers.Wait()
}

func TestAVolumeThatAControllerTiedToAClaimComesBackWhileTheClaimCanUseIt(t *testing.T) {
	for name, test := range map[string]struct {
		became func(*corev1.PersistentVolume)
		want   string
	}{
		"larger":                       {Holding("1Ti"), "v"},
		"on another node":              {OnNode("other"), "v"},
		"failed":                       {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeFailed }, "v"},
		"of another class":             {OfClass("fast"), "v"},
		"too small":                    {Holding("1Mi"), "better"},
		"without the access mode":      {WithModes(corev1.ReadOnlyMany), "better"},
		"of another volumeMode":        {func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, "better"},
		"of a volumeAttributesClass":   {func(pv *corev1.PersistentVolume) { pv.Spec.VolumeAttributesClassName = new("gold") }, "better"},
		"being deleted, in the middle": {func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = new(metav1.Now()) }, "better"},
	} {
		t.Run(name, func(t *testing.T) {
			claim, pv := Claim(ClaimUID("1")), Volume("v")
			binder.BindVolume(pv, claim)
			test.became(pv)
			index := indexOf(pv, Volume("better"))
			if got := nameOf(index.Reserve(binder.ClaimRequest{Claim: claim, Node: Node("node")})); got != test.want {
				t.Errorf("%q is reserved", got)
			}
		})
	}
}

func TestARemovedVolumeIsNotReserved(t *testing.T) {
	index := indexOf(Volume("v"), Volume("r", ReservedTo("data")))
	index.Remove("v")
	index.Remove("r")
	if got := index.Reserve(binder.ClaimRequest{Claim: Claim()}); got != nil {
		t.Errorf("volume %s is reserved", got.Name)
	}
}

// Volumes of one claim are linked, and those with a claimRef have places: a removal moves others.
func TestVolumesOfOneClaimAreForgottenOneByOne(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
		index := newIndex()
		for _, name := range names {
			index.Put(Volume(name, ReservedTo("data")))
		}
		for i, removed := range order {
			index.Remove(removed)
			want := ""
			if left := slices.Sorted(slices.Values(order[i+1:])); len(left) > 0 {
				want = left[0]
			}
			pv := index.Reserve(binder.ClaimRequest{Claim: Claim()})
			if got := nameOf(pv); got != want {
				t.Errorf("removed %v: %q is reserved, wanted %q", order[:i+1], got, want)
			}
			if pv != nil {
				index.Release(pv.Name, Claim().UID)
			}
			other := binder.ClaimRequest{Claim: Claim(ClaimNamed("other"), ClaimUID("other"))}
			if got := index.Counts(other)[binder.Reserved]; got != len(order)-i-1 {
				t.Errorf("removed %v: %d volumes are reserved", order[:i+1], got)
			}
		}
	}
}

// A cluster has a hundred thousand volumes.
func TestAVolumeTakesFewBytes(t *testing.T) {
	if binder.VolumeBytes > 48 {
		t.Errorf("it takes %d bytes, wanted 48: Go rounds more up to 64", binder.VolumeBytes)
	}
}

func TestAClaimThatNamesAVolume(t *testing.T) {
	for name, test := range map[string]struct {
		volume *corev1.PersistentVolume
		want   string
		cause  binder.Cause
	}{
		"gets it":                           {Volume("v", Labelled("disk", "hdd")), "v", binder.Fits},
		"waits for it":                      {Volume("other"), "", binder.Fits},
		"does not get it when too small":    {Volume("v", Holding("1Mi")), "", binder.TooSmall},
		"does not get it from another":      {Volume("v", ReservedTo("other")), "", binder.Reserved},
		"does not get it from another mode": {Volume("v", WithModes(corev1.ReadOnlyMany)), "", binder.OtherAccessModes},
	} {
		t.Run(name, func(t *testing.T) {
			got, cause := indexOf(test.volume).ReserveNamed(binder.ClaimRequest{Claim: Claim(AskingFor("v"))})
			if nameOf(got) != test.want || cause != test.cause {
				t.Errorf("got %q, %q and not %q, %q", nameOf(got), cause, test.want, test.cause)
			}
		})
	}
}

func TestAVolumeThatAClaimReservedByNameIsNotReservedForOthers(t *testing.T) {
	index := indexOf(Volume("v"))
	named := Claim(ClaimNamed("named"), ClaimUID("1"), AskingFor("v"))
	if pv, _ := index.ReserveNamed(binder.ClaimRequest{Claim: named}); pv == nil {
		t.Fatal("the claim that names the volume did not get it")
	}
	if index.Reserve(binder.ClaimRequest{Claim: Claim(ClaimUID("2"))}) != nil {
		t.Error("an unnamed claim got it too")
	}
}

func TestAVolumeThatAClaimNamesIsReservedForIt(t *testing.T) {
	named := Claim(ClaimNamed("named"), ClaimUID("1"), AskingFor("v"))
	unnamed := binder.ClaimRequest{Claim: Claim(ClaimUID("2"))}
	index := indexOf(Volume("v"))
	index.AddPreBound(named)
	if pv := index.Reserve(unnamed); pv != nil {
		t.Error("a claim that names no volume got it")
	}
	if text := index.Explain(unnamed); text != "1 volume without a class: 1 reserved for default/named" {
		t.Errorf("it says %q", text)
	}
	if pv, _ := index.ReserveNamed(binder.ClaimRequest{Claim: named}); pv == nil {
		t.Error("the claim that names it did not get it")
	}
	index.Release("v", named.UID)
	if !index.RemovePreBound(named) {
		t.Error("the removal does not report that the volume is free now")
	}
	if index.RemovePreBound(named) {
		t.Error("the removal reports twice that the volume is free")
	}
	if index.Reserve(unnamed) == nil {
		t.Error("no claim names the volume any more, and it is still reserved")
	}
}

func TestAVolumeThatLostItsClaimRefIsReservedForTheClaimThatIsBoundToIt(t *testing.T) {
	bound, pv := Claim(ClaimNamed("bound"), ClaimUID("1"), Asking("2Gi")), Volume("v")
	binder.BindClaim(bound, pv)
	index := indexOf(pv)
	index.AddPreBound(bound)
	if index.Reserve(binder.ClaimRequest{Claim: Claim(ClaimUID("2"))}) != nil {
		t.Error("a claim got a volume with the data of another claim")
	}
}

func TestAReservationEndsWithAnotherVersionOfTheVolume(t *testing.T) {
	version := func(version string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.ResourceVersion = version }
	}
	index := indexOf(Volume("v", version("1")))
	index.Reserve(binder.ClaimRequest{Claim: Claim(ClaimUID("1"))})
	index.Put(Volume("v", version("1")))
	if index.Reserve(binder.ClaimRequest{Claim: Claim(ClaimUID("2"))}) != nil {
		t.Fatal("the same version, seen again, made the volume free")
	}
	index.Put(Volume("v", version("3"))) // tied in version 2 and freed by a person
	if index.Reserve(binder.ClaimRequest{Claim: Claim(ClaimUID("2"))}) == nil {
		t.Error("the volume is free, and stays reserved")
	}
}

func TestAVolumeIsNotReservedForAClaimThatItDoesNotFit(t *testing.T) {
	index := indexOf(Volume("v"))
	index.AddPreBound(Claim(ClaimNamed("named"), ClaimUID("1"), AskingFor("v"), Asking("1Ti")))
	if index.Reserve(binder.ClaimRequest{Claim: Claim(ClaimUID("2"))}) == nil {
		t.Error("the volume is reserved for a claim that cannot have it")
	}
}

// newIndex returns an index that wakes no claim.
func newIndex() *binder.Index { return binder.NewIndex(func(types.NamespacedName) {}) }

func indexOf(volumes ...*corev1.PersistentVolume) *binder.Index {
	index := newIndex()
	for _, pv := range volumes {
		index.Put(pv)
	}
	return index
}

func nameOf(pv *corev1.PersistentVolume) string {
	if pv == nil {
		return ""
	}
	return pv.Name
}
