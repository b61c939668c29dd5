package event_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/message"
)

func TestTheNoteOfAnEventIsCutToWhatTheAPITakes(t *testing.T) {
	const reason = ": no space left on device"
	for name, note := range map[string]string{
		"short":                      "no room" + reason,
		"with a percent sign":        "100 %d" + reason,
		"as long as may be":          strings.Repeat("x", message.MaxNote-len(reason)) + reason,
		"one byte too long":          strings.Repeat("x", message.MaxNote-len(reason)+1) + reason,
		"long, of characters of two": strings.Repeat("é", message.MaxNote) + reason,
	} {
		t.Run(name, func(t *testing.T) {
			sent := events.NewFakeRecorder(1)
			event.Bounded(sent).Eventf(&corev1.Pod{}, nil, "Normal", "Reason", "Action", "%s", note)
			got := strings.TrimPrefix(<-sent.Events, "Normal Reason ")
			if len(got) > message.MaxNote || !utf8.ValidString(got) || !strings.HasSuffix(got, reason) {
				t.Errorf("%d bytes are sent: %q", len(got), got)
			}
			if len(note) <= message.MaxNote && got != note {
				t.Errorf("%q is sent", got)
			}
		})
	}
}
