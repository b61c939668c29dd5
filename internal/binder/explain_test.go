package binder_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/binder"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAnExplanationCountsEveryVolumeOfTheClassByCause(t *testing.T) {
	for _, test := range []struct {
		volumes []*corev1.PersistentVolume
		claim   *corev1.PersistentVolumeClaim
		node    string
		want    string
	}{
		{nil, Claim(), "", "no volume without a class exists"},
		{
			[]*corev1.PersistentVolume{Volume("other")},
			Claim(InClass("fast")), "", "no volume of class fast exists",
		},
		{
			[]*corev1.PersistentVolume{
				Volume("a", OfClass("fast"), Holding("5Gi")), Volume("b", OfClass("fast")),
				Volume("c", OfClass("fast"), ReservedTo("db")), Volume("other"),
			},
			Claim(InClass("fast"), Asking("10Gi")), "",
			"3 volumes of class fast: 2 too small (largest 5Gi: a, need 10Gi), 1 reserved for default/db",
		},
		{
			[]*corev1.PersistentVolume{Volume("a")},
			Claim(AskingModes(corev1.ReadWriteMany)), "",
			"1 volume without a class: 1 without access mode ReadWriteMany",
		},
		{
			[]*corev1.PersistentVolume{Volume("a")},
			Claim(AskingBlock()), "",
			"1 volume without a class: 1 not of volumeMode Block",
		},
		{
			[]*corev1.PersistentVolume{Volume("a", OnNode("n2"))},
			Claim(), "n1",
			"1 volume without a class: 1 not usable on node n1",
		},
	} {
		t.Run(test.want, func(t *testing.T) {
			request := binder.ClaimRequest{Claim: test.claim}
			if test.node != "" {
				request.Node = Node(test.node)
			}
			if got := indexOf(test.volumes...).Explain(request); got != test.want {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestAnExplanationNamesOnlyAFewClaims(t *testing.T) {
	index := newIndex()
	for i := range 5 {
		index.Put(Volume(fmt.Sprint("v", i), ReservedTo(fmt.Sprint("claim-", i))))
	}
	want := "5 volumes without a class: 5 reserved for other claims"
	if got := index.Explain(binder.ClaimRequest{Claim: Claim()}); got != want {
		t.Errorf("it says %q", got)
	}
}

func TestAnExplanationCountsAVolumeThatIsJustBeingBoundAsReserved(t *testing.T) {
	index, request := indexOf(Volume("v")), binder.ClaimRequest{Claim: Claim(ClaimUID("2"))}
	winner := Claim(ClaimNamed("winner"), ClaimUID("1"))
	pv := index.Reserve(binder.ClaimRequest{Claim: winner}).DeepCopy()
	want := "1 volume without a class: 1 reserved for default/winner"
	if got := index.Explain(request); got != want {
		t.Errorf("it says %q", got)
	}
	binder.BindVolume(pv, winner)
	index.Put(pv)
	if got := index.Explain(request); got != want {
		t.Errorf("once bound, it says %q", got)
	}
}

func TestAnExplanationSaysWhyTheVolumeReservedForTheClaimIsNotBound(t *testing.T) {
	mine := Volume("mine", OfClass("fast"), ReservedTo("data"))
	for want, volumes := range map[string][]*corev1.PersistentVolume{
		"volume mine is reserved for this claim, but too small (1Gi, need 5Gi); no other volume without a class exists": {mine},
		"volume mine is reserved for this claim, but too small (1Gi, need 5Gi); " +
			"1 volume without a class: 1 too small (largest 2Gi: other, need 5Gi)": {mine, Volume("other", Holding("2Gi"))},
	} {
		if got := indexOf(volumes...).Explain(binder.ClaimRequest{Claim: Claim(Asking("5Gi"))}); got != want {
			t.Errorf("it says %q", got)
		}
	}
}
