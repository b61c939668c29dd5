package inspect

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestTheMostSevereTroubleIsTheReasonAndAllAreReported(t *testing.T) {
	reason, message := Verdict([]Trouble{
		{stowagev1alpha1.ReasonVolumeNearlyFull, "full"}, {stowagev1alpha1.ReasonFileSystemReadOnly, "stopped"},
	})
	if reason != stowagev1alpha1.ReasonFileSystemReadOnly || message != "stopped; full" {
		t.Errorf("got %s, %q", reason, message)
	}
	if reason, _ := Verdict(nil); reason != stowagev1alpha1.ReasonReady {
		t.Errorf("no trouble has reason %s", reason)
	}
}

func TestWhatIsNearlyFullStaysSoUntilMuchOfItIsFree(t *testing.T) {
	for name, test := range map[string]struct {
		used     int64
		was, now bool
	}{
		"little":                       {10, false, false},
		"not yet":                      {94, false, false},
		"now":                          {95, false, true},
		"still, though less":           {91, true, true},
		"not any more":                 {89, true, false},
		"more than there is, as it is": {120, false, true},
	} {
		const unit = 1 << 50 // a disk so large that percents of it are beyond all numbers
		if got := isNearlyFull(test.used*unit, 100*unit, test.was); got != test.now {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if isNearlyFull(0, 0, false) {
		t.Error("nothing is nearly full of nothing")
	}
}

func TestErrorsOfDisksAreTroubleAndOthersAreNot(t *testing.T) {
	for err, reason := range map[error]string{
		fmt.Errorf("reading: %w", unix.EIO):     stowagev1alpha1.ReasonIOError,
		fmt.Errorf("reading: %w", unix.EUCLEAN): stowagev1alpha1.ReasonIOError,
		layout.ErrImageMissing:                  stowagev1alpha1.ReasonImageMissing,
		layout.ErrLost:                          stowagev1alpha1.ReasonLost,
		layout.ErrExhausted:                     "",
		io.EOF:                                  "",
		errors.New("something else"):            "",
	} {
		got := ""
		if troubles := TroubleOf(err); len(troubles) > 0 {
			got = troubles[0].reason
		}
		if got != reason {
			t.Errorf("%v: got %q", err, got)
		}
	}
}
