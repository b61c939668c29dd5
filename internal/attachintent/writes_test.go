package attachintent_test

import (
	"errors"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/attachintent"
)

// written is an attachment as a write made it.
func written(uid types.UID, version string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
}

func succeeds() error { return nil }

func follows() bool { return false }

func TestAWriteIsShownByTheAttachmentAsItWasWrittenOrLater(t *testing.T) {
	writes := attachintent.NewWrites(clocktesting.NewFakePassiveClock(time.Now()), follows)
	_ = writes.By(written("a", "10"), succeeds)
	write, found := writes.Take(written("a", "10"))
	if !found {
		t.Fatal("it isn't found")
	}
	for name, test := range map[string]struct {
		object *storagev1.VolumeAttachment
		shown  bool
	}{
		"as it was written":       {written("a", "10"), true},
		"as it was changed since": {written("a", "11"), true},
		"as it was before":        {written("a", "9"), false},
		"another, changed since":  {written("b", "11"), false},
		"one without a version":   {written("a", ""), false},
	} {
		if shown := write.ShownBy(test.object); shown != test.shown {
			t.Errorf("%s: it is shown is %t", name, shown)
		}
	}
}

func TestAWriteProvesForASecondOrForTenInALeader(t *testing.T) {
	began := time.Now()
	clock := clocktesting.NewFakePassiveClock(began)
	for moment, leads := range map[time.Duration]func() bool{time.Second: follows, 10 * time.Second: func() bool { return true }} {
		clock.SetTime(began)
		writes := attachintent.NewWrites(clock, leads)
		_ = writes.By(written("a", "10"), succeeds)
		write, _ := writes.Take(written("a", "10"))
		for after, proves := range map[time.Duration]bool{0: true, moment: true, moment + 1: false, -1: false} {
			clock.SetTime(began.Add(after))
			if does := writes.Prove(write); does != proves {
				t.Errorf("after %s of %s it proves is %t", after, moment, does)
			}
		}
	}
}

func TestAWriteIsTakenOnce(t *testing.T) {
	writes := attachintent.NewWrites(clocktesting.NewFakePassiveClock(time.Now()), follows)
	_ = writes.By(written("a", "10"), succeeds)
	for _, want := range []bool{true, false} {
		if _, found := writes.Take(written("a", "10")); found != want {
			t.Errorf("it is found is %t", found)
		}
	}
}

func TestAWriteThatFailedProvesNothing(t *testing.T) {
	writes := attachintent.NewWrites(clocktesting.NewFakePassiveClock(time.Now()), follows)
	failure := errors.New("refused")
	if err := writes.By(written("a", "10"), func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("it ends with %v", err)
	}
	if _, found := writes.Take(written("a", "10")); found {
		t.Error("it is found")
	}
}

func TestAWriteIsForgottenAfterASecond(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	writes := attachintent.NewWrites(clock, follows)
	for range 3 {
		_ = writes.By(written("a", "10"), succeeds)
		clock.SetTime(clock.Now().Add(time.Second + 1))
		_ = writes.By(written("b", "11"), succeeds)
		if _, found := writes.Take(written("a", "10")); found {
			t.Error("it is found")
		}
	}
}

func TestAWriteThatTakesLongIsNoProof(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	writes := attachintent.NewWrites(clock, follows)
	_ = writes.By(written("a", "10"), func() error {
		clock.SetTime(clock.Now().Add(2 * time.Second))
		return nil
	})
	if _, found := writes.Take(written("a", "10")); found {
		t.Error("it is found")
	}
}
