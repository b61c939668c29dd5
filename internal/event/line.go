package event

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/message"
)

// effects are the reasons of events that tell of an effect, and the message of its line.
var effects = map[string]string{
	ProvisioningSucceeded:      effect.Provisioned,
	VolumeDeleted:              effect.Deleted,
	VolumeRetained:             effect.Retained,
	UndeleteWindowBegan:        effect.Kept,
	VolumeRecycled:             effect.Recycled,
	VolumeResizeSuccessful:     effect.Expanded,
	FileSystemResizeRequired:   effect.Expanded,
	FileSystemResizeSuccessful: effect.Expanded,
	NodeVolumeAdopted:          effect.Adopted,
	ForcedDetachVolume:         effect.Forced,
	OrphanRemoved:              effect.OrphanRemoved,
	StorageClassRemoved:        effect.ClassRemoved,
}

// logged writes a line to the log for each event.
type logged struct {
	events.EventRecorder
	log logr.Logger
	// began is when what the next events tell of was requested; zero if unknown.
	began time.Time
}

// Logged wraps a recorder, and writes a line to the log for each event. Effects and warnings have
// level 0, the rest has level 1. The recorder's callers record an event once, so the line isn't
// repeated either.
func Logged(of events.EventRecorder, log logr.Logger) events.EventRecorder {
	return logged{EventRecorder: of, log: log}
}

// Since returns the recorder for an event about something that was requested at a time: the line
// has the duration.
func Since(began time.Time, of events.EventRecorder) events.EventRecorder {
	if line, is := of.(logged); is {
		line.began = began
		return line
	}
	return of
}

// Unlogged returns the recorder without lines. It is for a second object's event about the same
// effect or failure.
func Unlogged(of events.EventRecorder) events.EventRecorder {
	if line, is := of.(logged); is {
		return line.EventRecorder
	}
	return of
}

// Eventf sends one event, and writes its line.
//
//nolint:revive // the signature is client-go's
func (l logged) Eventf(regarding, related runtime.Object, kind, reason, action, note string, arguments ...any) {
	l.EventRecorder.Eventf(regarding, related, kind, reason, action, note, arguments...)
	log, what := l.log, effects[reason]
	switch {
	case what != "":
		effect.Count(what, l.began)
	case kind == corev1.EventTypeWarning:
		what = effect.Warning
	default:
		log, what = log.V(1), "recorded"
	}
	if !log.Enabled() {
		return
	}
	values := append(effect.About(regarding, related), effect.Since(l.began)...)
	text := message.Cut(fmt.Sprintf(note, arguments...), message.MaxNote)
	log.Info(what, append(values, effect.Reason, reason, effect.Note, text)...)
}
