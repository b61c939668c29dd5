package binder_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/binder"
	. "github.com/stowage-dev/stowage/test/fixture"
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
			"3 volumes of class fast: 2 too small (largest 5Gi, need 10Gi), 1 reserved for default/db",
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
			wish := binder.Wish{Claim: test.claim}
			if test.node != "" {
				wish.Node = Node(test.node)
			}
			if got, _ := indexOf(test.volumes...).Explain(wish); got != test.want {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestAnExplanationNamesOnlyAFewClaims(t *testing.T) {
	index := binder.NewIndex()
	for i := range 5 {
		index.Put(Volume(fmt.Sprint("v", i), ReservedTo(fmt.Sprint("claim-", i))))
	}
	want := "5 volumes without a class: 5 reserved for default/claim-0, default/claim-1, default/claim-2 and 2 other claims"
	if got, _ := index.Explain(binder.Wish{Claim: Claim()}); got != want {
		t.Errorf("it says %q", got)
	}
}

func TestAnExplanationTellsOfAVolumeThatIsJustBeingBound(t *testing.T) {
	index, wish := indexOf(Volume("v")), binder.Wish{Claim: Claim(ClaimUID("2"))}
	index.Take(binder.Wish{Claim: Claim(ClaimUID("1"))})
	text, contended := index.Explain(wish)
	if want := "1 volume without a class: 1 being bound to another claim"; text != want || !contended {
		t.Errorf("it says %q, contended %t", text, contended)
	}
	index.GiveBack("v", "1")
	if _, contended := index.Explain(wish); contended {
		t.Error("a volume that nobody is binding is contended")
	}
}
