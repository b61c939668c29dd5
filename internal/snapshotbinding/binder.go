package snapshotbinding

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/event"
)

// Binder binds the snapshots of one kind to their contents.
type Binder struct {
	*Claims
	Client client.Client
	Live   client.Reader
	Kind   *Kind
	Events events.EventRecorder
	Clock  clock.PassiveClock
	last   event.Last
}
