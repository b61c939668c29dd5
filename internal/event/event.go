// Package event sends events that the API server accepts, and writes a line to the log for each.
// Each program makes one recorder for all of its controllers. It does not decide what is recorded,
// or when.
package event

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/message"
)

// bounded cuts notes to the limit of the API.
type bounded struct{ events.EventRecorder }

// Bounded wraps a recorder and cuts notes that are too long. The API server refuses such
// events, and then users see nothing.
func Bounded(of events.EventRecorder) events.EventRecorder { return bounded{of} }

// Eventf sends one event.
//
//nolint:revive // the signature is client-go's
func (b bounded) Eventf(regarding, related runtime.Object, kind, reason, action, note string, arguments ...any) {
	b.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", message.Cut(fmt.Sprintf(note, arguments...), message.MaxNote))
}

// RecorderOf returns a recorder that sends and logs the manager's events.
func RecorderOf(mgr ctrl.Manager) events.EventRecorder {
	return Logged(Bounded(mgr.GetEventRecorder("stowage-manager")), ctrl.Log)
}
