package event_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/message"
)

// recorded are the lines and the events of some events.
func recorded(verbosity int, record func(events.EventRecorder)) (lines []string, sent int) {
	fake := events.NewFakeRecorder(10)
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: verbosity})
	record(event.Logged(event.Bounded(fake), log))
	return lines, len(fake.Events)
}

func TestAnEventOfAnEffectOrAWarningHasALine(t *testing.T) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	record := func(recorder events.EventRecorder) {
		recorder.Eventf(pv, nil, "Normal", "VolumeDeleted", "Delete", "it is %s", "gone")
		recorder.Eventf(pv, nil, "Warning", "VolumeFailedDelete", "Delete", "the storage is away")
		recorder.Eventf(pv, nil, "Normal", "VolumeDelete", "Delete", "waiting for the agent")
	}
	want := []string{
		`"level"=0 "msg"="deleted" "volume"="pvc-1" "reason"="VolumeDeleted" "note"="it is gone"`,
		`"level"=0 "msg"="warning" "volume"="pvc-1" "reason"="VolumeFailedDelete" "note"="the storage is away"`,
		`"level"=1 "msg"="recorded" "volume"="pvc-1" "reason"="VolumeDelete" "note"="waiting for the agent"`,
	}
	for verbosity, want := range [][]string{want[:2], want} {
		if lines, sent := recorded(verbosity, record); strings.Join(lines, "\n") != strings.Join(want, "\n") || sent != 3 {
			t.Errorf("level %d: %d events, and the lines\n%s", verbosity, sent, strings.Join(lines, "\n"))
		}
	}
}

func TestALineIsOneAndBoundedWhateverTheNoteHas(t *testing.T) {
	lines, _ := recorded(0, func(recorder events.EventRecorder) {
		recorder.Eventf(&corev1.Pod{}, nil, "Warning", "FailedMount", "Mount", "%s", "a\nb\"c\x1b"+strings.Repeat("x", 10*message.MaxNote))
	})
	if len(lines) != 1 || strings.ContainsAny(lines[0], "\n\x1b") || !strings.Contains(lines[0], `a\nb\"c`) || len(lines[0]) > message.MaxNote+200 {
		t.Errorf("got %q", lines)
	}
}

func TestAnEventOfASecondObjectHasNoLine(t *testing.T) {
	lines, sent := recorded(1, func(recorder events.EventRecorder) {
		event.Unlogged(recorder).Eventf(&corev1.Pod{}, nil, "Warning", "FailedMount", "Mount", "no")
	})
	if len(lines) != 0 || sent != 1 {
		t.Errorf("%d events, and the lines %q", sent, lines)
	}
}

func TestALineHasTheTimeSinceItsEffectWasRequested(t *testing.T) {
	lines, _ := recorded(0, func(recorder events.EventRecorder) {
		event.Since(time.Now().Add(-time.Hour), recorder).Eventf(&corev1.Pod{}, nil, "Normal", "VolumeDeleted", "Delete", "gone")
	})
	if len(lines) != 1 || !strings.Contains(lines[0], `"took"="1h0m0`) {
		t.Errorf("got %q", lines)
	}
}
