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

func TestAPreparationIsShownByTheAttachmentAsItWasWrittenOrLater(t *testing.T) {
	prepared := attachintent.NewPreparations(clocktesting.NewFakePassiveClock(time.Now()))
	_ = prepared.By(written("a", "10"), succeeds)
	preparation, found := prepared.Take(written("a", "10"))
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
		if shown := preparation.ShownBy(test.object); shown != test.shown {
			t.Errorf("%s: it is shown is %t", name, shown)
		}
	}
}

func TestAPreparationIsRecentForASecond(t *testing.T) {
	began := time.Now()
	prepared := attachintent.NewPreparations(clocktesting.NewFakePassiveClock(began))
	_ = prepared.By(written("a", "10"), succeeds)
	preparation, _ := prepared.Take(written("a", "10"))
	for after, recent := range map[time.Duration]bool{0: true, time.Second: true, time.Second + 1: false, -1: false} {
		if is := preparation.IsRecent(began.Add(after)); is != recent {
			t.Errorf("after %s it is recent is %t", after, is)
		}
	}
}

func TestAPreparationIsTakenOnce(t *testing.T) {
	prepared := attachintent.NewPreparations(clocktesting.NewFakePassiveClock(time.Now()))
	_ = prepared.By(written("a", "10"), succeeds)
	for _, want := range []bool{true, false} {
		if _, found := prepared.Take(written("a", "10")); found != want {
			t.Errorf("it is found is %t", found)
		}
	}
}

func TestAWriteThatFailedIsNoPreparation(t *testing.T) {
	prepared := attachintent.NewPreparations(clocktesting.NewFakePassiveClock(time.Now()))
	failure := errors.New("refused")
	if err := prepared.By(written("a", "10"), func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("it ends with %v", err)
	}
	if _, found := prepared.Take(written("a", "10")); found {
		t.Error("it is found")
	}
}

func TestAPreparationIsForgottenAfterASecond(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	prepared := attachintent.NewPreparations(clock)
	for range 3 {
		_ = prepared.By(written("a", "10"), succeeds)
		clock.SetTime(clock.Now().Add(time.Second + 1))
		_ = prepared.By(written("b", "11"), succeeds)
		if _, found := prepared.Take(written("a", "10")); found {
			t.Error("it is found")
		}
	}
}

func TestAPreparationThatTakesLongIsNoProof(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	prepared := attachintent.NewPreparations(clock)
	_ = prepared.By(written("a", "10"), func() error {
		clock.SetTime(clock.Now().Add(2 * time.Second))
		return nil
	})
	if _, found := prepared.Take(written("a", "10")); found {
		t.Error("it is found")
	}
}
