package ownership_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// hurry is a clock on which some time passes whenever it is looked at.
type hurry struct {
	now  time.Time
	step time.Duration
}

func (h *hurry) Now() time.Time {
	h.now = h.now.Add(h.step)
	return h.now
}

func (h *hurry) Since(then time.Time) time.Duration { return h.now.Sub(then) }

func TestATreeThatTakesLongIsReportedNowAndThen(t *testing.T) {
	mounttest.NeedsRoot(t)
	tests := map[string]struct {
		step   time.Duration
		events int
	}{"it is quick": {time.Millisecond, 0}, "it takes long": {20 * time.Second, 2}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			top := folder(t, 0o700, t.TempDir(), "top")
			// One reading of the clock for each directory, and one before.
			for _, dir := range []string{"a", "b", "c", "d", "e"} {
				_ = file(t, 0o600, folder(t, 0o700, top, dir), "plain")
			}
			recorder := events.NewFakeRecorder(10)
			owner := ownership.Owner{Events: recorder, Clock: &hurry{step: test.step}}
			pod := podWith(&corev1.PodSecurityContext{FSGroup: new(int64(someGroup))})
			if err := owner.ApplyFSGroup(t.Context(), pod, "data", mounttest.Open(t, top)); err != nil {
				t.Fatal(err)
			}
			mustBe(t, top, someGroup, 0o2770)
			if len(recorder.Events) != test.events {
				t.Errorf("%d events were sent", len(recorder.Events))
			}
			for len(recorder.Events) > 0 {
				if event := <-recorder.Events; !strings.Contains(event, "VolumePermissionChangeInProgress") || !strings.Contains(event, "OnRootMismatch") {
					t.Errorf("the event was %s", event)
				}
			}
		})
	}
}

func TestAPodWithoutAGroupLeavesItsVolumeAsItIs(t *testing.T) {
	top := t.TempDir()
	before, err := os.Stat(top)
	must(t, err)
	for _, pod := range []*corev1.Pod{nil, podWith(nil)} {
		must(t, (ownership.Owner{}).ApplyFSGroup(t.Context(), pod, "data", mounttest.Open(t, top)))
	}
	if after, err := os.Stat(top); err != nil || after.Mode() != before.Mode() {
		t.Errorf("its mode is %v (%v)", after.Mode(), err)
	}
}
