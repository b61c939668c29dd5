package controllers

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"

	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestTheNoteOfAnEventIsCutToWhatTheAPITakes(t *testing.T) {
	for name, note := range map[string]string{
		"short":                      "no room",
		"as long as may be":          strings.Repeat("x", maxNote),
		"one byte too long":          strings.Repeat("x", maxNote+1),
		"long, of characters of two": strings.Repeat("é", maxNote),
		"long, of characters of two, at an odd place": "x" + strings.Repeat("é", maxNote),
	} {
		t.Run(name, func(t *testing.T) {
			sent := events.NewFakeRecorder(1)
			recorder{sent}.Eventf(Claim(), nil, "Normal", "Reason", "Action", "%s", note)
			got := strings.TrimPrefix(<-sent.Events, "Normal Reason ")
			if len(got) > maxNote || !utf8.ValidString(got) {
				t.Errorf("%d bytes are sent, valid: %t", len(got), utf8.ValidString(got))
			}
			if kept := strings.TrimSuffix(got, "…"); !strings.HasPrefix(note, kept) || len(note) <= maxNote && got != note {
				t.Errorf("%q is sent", got)
			}
		})
	}
}
