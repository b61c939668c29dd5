package controllers

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
)

// maxNote is how many bytes the note of an event may have.
const maxNote = 1024

// recorder sends the manager's events. It cuts notes that are too long: the API
// server refuses such events, and nobody would be told anything.
type recorder struct{ events.EventRecorder }

func recorderOf(mgr ctrl.Manager) events.EventRecorder {
	return recorder{mgr.GetEventRecorder("stowage-manager")}
}

// Eventf sends one event.
//
//nolint:revive // the signature is client-go's
func (r recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, arguments ...any) {
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", cut(fmt.Sprintf(note, arguments...)))
}

// cut shortens a note to what an event may have, between two characters.
func cut(note string) string {
	const more = "…"
	if len(note) <= maxNote {
		return note
	}
	end := maxNote - len(more)
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + more
}
