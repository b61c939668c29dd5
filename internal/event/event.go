// Package event sends events that the API server takes. Programs make a recorder of it for all
// of their controllers; it decides nothing about what is told, and when.
package event

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/stowage-dev/stowage/internal/message"
)

// bounded cuts what an event can't have.
type bounded struct{ events.EventRecorder }

// Bounded returns a recorder that cuts notes which are too long for another one. The API
// server refuses such events, and then users see nothing.
func Bounded(of events.EventRecorder) events.EventRecorder { return bounded{of} }

// Eventf sends one event.
//
//nolint:revive // the signature is client-go's
func (b bounded) Eventf(regarding, related runtime.Object, kind, reason, action, note string, arguments ...any) {
	b.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", message.Cut(fmt.Sprintf(note, arguments...), message.MaxNote))
}
