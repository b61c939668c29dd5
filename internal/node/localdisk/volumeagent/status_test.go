package volumeagent

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

func TestEachKindOfErrorHasItsReason(t *testing.T) {
	tests := map[error]string{
		layout.ErrNotSupported: stowagev1alpha1.ReasonNotSupported,
		layout.ErrInvalid:      stowagev1alpha1.ReasonInvalid,
		layout.ErrLost:         stowagev1alpha1.ReasonLost,
		layout.ErrExhausted:    stowagev1alpha1.ReasonExhausted,
		layout.ErrInUse:        stowagev1alpha1.ReasonInUse,
		layout.ErrQueued:       stowagev1alpha1.ReasonPending,
		unix.EIO:               stowagev1alpha1.ReasonUnavailable,
		mount.ErrMounted:       stowagev1alpha1.ReasonInUse,
		safepath.ErrOutside:    stowagev1alpha1.ReasonPathOutsideBase,
		layout.ErrNoDisk:       stowagev1alpha1.ReasonUnavailable,
		unix.ENOSPC:            stowagev1alpha1.ReasonExhausted,
		unix.EDQUOT:            stowagev1alpha1.ReasonExhausted,

		device.ErrTooSmall:       stowagev1alpha1.ReasonInvalid,
		device.ErrUnknownType:    stowagev1alpha1.ReasonInvalid,
		device.ErrNoTool:         stowagev1alpha1.ReasonUnavailable,
		device.ErrCannotAllocate: stowagev1alpha1.ReasonUnavailable,
		os.ErrPermission:         stowagev1alpha1.ReasonUnavailable,
	}
	for err, want := range tests {
		if got := reasons.Of(fmt.Errorf("doing something: %w", err)); got != want {
			t.Errorf("%v has reason %s, want %s", err, got, want)
		}
	}
}

func TestARemovalThatReleasedItsSlotContinuesSoon(t *testing.T) {
	err := fmt.Errorf("removing: %w", filetree.ErrUnfinished)
	if wait := retryOf(err).RequeueAfter; wait != sliceRetry {
		t.Errorf("it continues after %s", wait)
	}
}
